/** Line by line out of the bytes: strings of this size are cheap, one of the whole text is not. */
export function splitLines(bytes: Buffer): string[] {
  const lines: string[] = [];
  for (let start = 0; start <= bytes.length; ) {
    const end = bytes.indexOf(10, start);
    lines.push(bytes.toString("utf8", start, end < 0 ? bytes.length : end));
    start = end < 0 ? bytes.length + 1 : end + 1;
  }
  return lines;
}
