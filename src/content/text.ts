// Texts in files: which types are texts, and the characters of their bytes.

const textTypes =
  /^(text\/.*|application\/(json|xml|javascript|ecmascript|x-ndjson|yaml|x-yaml|toml|sql|graphql|x-sh)|.*\+(json|xml|yaml))$/i;

/** Whether a file of this type is characters, as they stand. */
export function isTextType(mediaType: string): boolean {
  return textTypes.test(mediaType.split(";")[0]!.trim());
}

const marks: readonly { readonly bytes: readonly number[]; readonly encoding: string }[] = [
  { bytes: [0xef, 0xbb, 0xbf], encoding: "utf-8" },
  { bytes: [0xff, 0xfe], encoding: "utf-16le" },
  { bytes: [0xfe, 0xff], encoding: "utf-16be" },
];

/** The characters: in the encoding that a byte order mark names, else UTF-8, else Latin-1, which every byte fits. */
export function decodeText(bytes: Uint8Array): string {
  const mark = marks.find((each) => each.bytes.every((byte, i) => bytes[i] === byte));
  if (mark) return new TextDecoder(mark.encoding).decode(bytes);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("latin1").decode(bytes);
  }
}
