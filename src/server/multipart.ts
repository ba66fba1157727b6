// A form of `multipart/form-data`, read for its one file. The time is that of one search for the boundary through the bytes,
// whatever they say: parts, and the headers of all of them, are few or the form is refused.

import { Refusal } from "./refusal.ts";

const maxParts = 16;
const maxHeaderBytes = 16 * 1024;

interface Part {
  readonly name: string | undefined;
  readonly fileName: string | undefined;
  readonly bytes: Uint8Array;
}

/** The first part called `file`, with the name it was sent with. Its bytes are a view of the form's. */
export function readFormFile(form: Uint8Array, contentType: string): { bytes: Uint8Array; fileName: string } {
  const boundary = boundaryOf(contentType);
  if (boundary === undefined) throw notReadable();
  let file: Part | undefined;
  for (const part of readParts(Buffer.from(form.buffer, form.byteOffset, form.byteLength), boundary)) {
    if (part.name === "file") file ??= part;
  }
  if (file?.fileName === undefined) throw new Refusal("invalid_argument", "The form has no field `file`.");
  return { bytes: file.bytes, fileName: file.fileName };
}

function boundaryOf(contentType: string): string | undefined {
  if (!/^multipart\/form-data *;/i.test(contentType)) return undefined;
  const found = /; *boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70})(?:[\s;]|$))/i.exec(contentType);
  return found?.[1] ?? found?.[2];
}

function* readParts(form: Buffer, boundary: string): Generator<Part> {
  const delimiter = Buffer.from(`\r\n--${boundary}`, "latin1");
  const isFirst = isAt(form, 0, `--${boundary}`);
  const first = isFirst ? -2 : form.indexOf(delimiter);
  if (first === -1) throw notReadable();
  let at = first + delimiter.length;
  let headerBytes = 0;
  for (let count = 0; !isAt(form, at, "--"); count++) {
    if (count === maxParts) throw tooMuch(`A form has at most ${maxParts} parts.`, maxParts);
    const headersAt = skipLineEnd(form, at);
    const left = maxHeaderBytes - headerBytes;
    // From the line's end on, so that a part without any header is found, too.
    const size = form.subarray(headersAt - 2, headersAt + left + 2).indexOf("\r\n\r\n");
    if (size < 0 && form.length - headersAt <= left) throw notReadable();
    if (size < 0) throw tooMuch(`The headers of a form's parts have at most ${maxHeaderBytes} bytes.`, maxHeaderBytes);
    headerBytes += size;
    const bytesAt = headersAt + size + 2;
    // Two back: a part may be empty, its headers' last line end being the delimiter's.
    const end = form.indexOf(delimiter, bytesAt - 2);
    if (end < 0) throw notReadable();
    const head = form.toString("utf8", headersAt, headersAt + size);
    yield { ...describe(head), bytes: form.subarray(bytesAt, Math.max(bytesAt, end)) };
    at = end + delimiter.length;
  }
}

/** Where the line after a boundary begins; there may be blanks at the end of the boundary's. */
function skipLineEnd(form: Buffer, at: number): number {
  let end = at;
  while (form[end] === 0x20 || form[end] === 0x09) end++;
  if (!isAt(form, end, "\r\n")) throw notReadable();
  return end + 2;
}

function isAt(form: Buffer, at: number, text: string): boolean {
  return form.toString("latin1", at, at + text.length) === text;
}

function describe(head: string): { name: string | undefined; fileName: string | undefined } {
  let disposition = "";
  for (const line of head.split("\r\n")) {
    const colon = line.indexOf(":");
    const header = line.slice(0, colon).trim().toLowerCase();
    const value = line.slice(colon + 1).trim();
    if (header === "content-disposition") disposition = value;
    if (header === "content-transfer-encoding" && !/^(7bit|8bit|binary)$/i.test(value)) throw notReadable();
  }
  const given = parametersOf(disposition);
  return { name: given.get("name"), fileName: given.get("filename") };
}

function parametersOf(disposition: string): Map<string, string> {
  const given = new Map<string, string>();
  const kind = /^form-data(?=[;\s]|$)/i.exec(disposition);
  if (!kind) return given;
  const parameter = /\s*;\s*([\w*-]+)=(?:"((?:\\["\\]|\\(?!["\\])|[^"\\])*)"|([^\s;"]*))/y;
  parameter.lastIndex = kind[0].length;
  for (let found = parameter.exec(disposition); found; found = parameter.exec(disposition)) {
    const [, key, quoted, plain] = found;
    given.set(key!.toLowerCase(), plain ?? unescaped(quoted!));
  }
  return given;
}

/** Browsers write `%22`, `%0D` and `%0A` for what a quoted text can't hold, other clients a backslash before it. */
function unescaped(quoted: string): string {
  const plain = quoted.replace(/\\(["\\])/g, "$1");
  return plain.replace(/%(22|0d|0a)/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
}

function notReadable(): Refusal {
  return new Refusal("invalid_argument", "The form is no multipart/form-data that can be read.");
}

function tooMuch(sentence: string, limit: number): Refusal {
  return new Refusal("limit_exceeded", sentence, { limit });
}
