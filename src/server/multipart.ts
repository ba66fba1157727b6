// Reads the file of a `multipart/form-data` form. It takes one search for the boundary through the bytes,
// whatever they contain: a form with too many parts or headers is refused.

import { Refusal } from "./refusal.ts";

const maxParts = 16;
const maxHeaderBytes = 16 * 1024;
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const headersEnd = latin1("\r\n\r\n");

interface Part {
  readonly name: string | undefined;
  readonly fileName: string | undefined;
  readonly bytes: Uint8Array;
}

/** The first part named `file`, with its file name. Its bytes are a view of the form's. */
export function readFormFile(form: Uint8Array, contentType: string): { bytes: Uint8Array; fileName: string } {
  const boundary = boundaryOf(contentType);
  if (boundary === undefined) throw notReadable();
  let file: Part | undefined;
  const bytes = globalThis.Buffer ? Buffer.from(form.buffer, form.byteOffset, form.byteLength) : form;
  for (const part of readParts(bytes, boundary)) {
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

function* readParts(form: Uint8Array, boundary: string): Generator<Part> {
  const delimiter = latin1(`\r\n--${boundary}`);
  const isFirst = isAt(form, 0, `--${boundary}`);
  const first = isFirst ? -2 : find(form, delimiter, 0);
  if (first === -1) throw notReadable();
  let at = first + delimiter.length;
  let headerBytes = 0;
  for (let count = 0; !isAt(form, at, "--"); count++) {
    if (count === maxParts) throw tooMuch(`A form can have at most ${maxParts} parts.`, maxParts);
    const headersAt = skipLineEnd(form, at);
    const left = maxHeaderBytes - headerBytes;
    // Starts at the line's end, so that a part without headers is found, too.
    const size = find(form.subarray(headersAt - 2, headersAt + left + 2), headersEnd, 0);
    if (size < 0 && form.length - headersAt <= left) throw notReadable();
    if (size < 0)
      throw tooMuch(`The headers of a form's parts can have at most ${maxHeaderBytes} bytes.`, maxHeaderBytes);
    headerBytes += size;
    const bytesAt = headersAt + size + 2;
    // Two back: in an empty part, the last line end of the headers is also the delimiter's.
    const end = find(form, delimiter, bytesAt - 2);
    if (end < 0) throw notReadable();
    const head = decoder.decode(form.subarray(headersAt, headersAt + size));
    yield { ...describe(head), bytes: form.subarray(bytesAt, Math.max(bytesAt, end)) };
    at = end + delimiter.length;
  }
}

/** Where the line after a boundary begins; blanks may follow the boundary. */
function skipLineEnd(form: Uint8Array, at: number): number {
  let end = at;
  while (form[end] === 0x20 || form[end] === 0x09) end++;
  if (!isAt(form, end, "\r\n")) throw notReadable();
  return end + 2;
}

function isAt(form: Uint8Array, at: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) if (form[at + i] !== text.charCodeAt(i)) return false;
  return true;
}

/** The index of a byte sequence after an offset, or -1. Its first byte occurs only once in it, so no byte is read often. */
function find(form: Uint8Array, bytes: Uint8Array, from: number): number {
  // Node's own search is many times faster.
  if (globalThis.Buffer && form instanceof Buffer) return form.indexOf(bytes, from);
  for (let at = from; at <= form.length - bytes.length; at++) {
    if (form[at] !== bytes[0]) continue;
    let same = 1;
    while (same < bytes.length && form[at + same] === bytes[same]) same++;
    if (same === bytes.length) return at;
  }
  return -1;
}

function latin1(text: string): Uint8Array {
  return Uint8Array.from(text, (character) => character.charCodeAt(0) % 256);
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

/** Browsers escape quotes and line breaks as `%22`, `%0D` and `%0A`; other clients use a backslash. */
function unescaped(quoted: string): string {
  const plain = quoted.replace(/\\(["\\])/g, "$1");
  return plain.replace(/%(22|0d|0a)/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
}

function notReadable(): Refusal {
  return new Refusal("invalid_argument", "The form is not valid multipart/form-data.");
}

function tooMuch(sentence: string, limit: number): Refusal {
  return new Refusal("limit_exceeded", sentence, { limit });
}
