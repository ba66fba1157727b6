// Ids become file names. Two different ids never share a name, also where the file system folds case or normalises
// Unicode, because a name has only a-z, 0-9, "_", "-" and "=". Simple ids stay as they are; every other character
// becomes "=" and two hexadecimal digits a byte. The full id is stored inside and compared when it is loaded, so a name
// need not be read back.

import { createHash } from "node:crypto";

const nameCharacters = "abcdefghijklmnopqrstuvwxyz0123456789_=-";
const longestName = 100;
// Windows opens a device instead of a file under these names.
const devices = new Set(["con", "prn", "aux", "nul"]);
for (let n = 0; n <= 9; n++) devices.add(`com${n}`).add(`lpt${n}`);

/** The file name of an id. */
export function nameOf(id: string): string {
  if (isName(id) && !id.includes("=") && id.length <= longestName && !devices.has(id)) return id;
  if (id === "") return "=";
  const [first = "", ...rest] = id;
  const name = escapeFirst(first, devices.has(id)) + rest.map(escapeCharacter).join("");
  // "h" is no hexadecimal digit, so a hashed name is never an escaped one.
  return name.length <= longestName ? name : `=h${createHash("sha256").update(name).digest("hex")}`;
}

/** Whether a file name can be one of ours; what a desktop or an editor leaves in a directory can't. */
export function isName(name: string): boolean {
  for (let i = 0; i < name.length; i++) if (!nameCharacters.includes(name[i]!)) return false;
  return name !== "" && name[0] !== "-";
}

function escapeFirst(character: string, always: boolean): string {
  return always || character === "-" ? escapeBytes(character) : escapeCharacter(character);
}

function escapeCharacter(character: string): string {
  if (/^[a-z0-9_-]$/.test(character)) return character;
  // Half a surrogate pair has no bytes in UTF-8; "u" is no hexadecimal digit either.
  if (/\p{Surrogate}/u.test(character)) return `=u${character.charCodeAt(0).toString(16)}`;
  return escapeBytes(character);
}

function escapeBytes(character: string): string {
  let escaped = "";
  for (const byte of Buffer.from(character)) escaped += `=${byte.toString(16).padStart(2, "0")}`;
  return escaped;
}
