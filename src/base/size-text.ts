/** A number of bytes for people: "17 bytes", "6.1 MB". */
export function sizeText(bytes: number): string {
  if (bytes < 1_000) return bytes === 1 ? "1 byte" : `${bytes} bytes`;
  const [value, unit] = bytes < 999_950 ? [bytes / 1_000, "KB"] : [bytes / 1_000_000, "MB"];
  return `${value.toFixed(1)} ${unit}`;
}
