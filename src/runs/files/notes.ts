// What a model reads in the place of a file that it is not sent.

import { sizeText } from "../../base/size-text.ts";
import type { FilePart } from "../../events/files.ts";

type Named = Pick<FilePart, "mediaType" | "filename">;

/** `[image tree.png, 2.1 MB: not sent (too large for this call)]`. */
export function noteOf(file: Named, size: number | undefined, why: string): string {
  const kind = /^(image|audio|video)(\/|$)/.exec(file.mediaType)?.[1] ?? "file";
  const name = oneLine(file.filename ?? file.mediaType);
  const about = [`${kind} ${name}`, ...(size === undefined ? [] : [sizeText(size)])].join(", ");
  return `[${about}: ${oneLine(why, 2_000)}]`;
}

/** A text file as text, with its name. */
export function quoteFile(file: Named, text: string): string {
  const name = file.filename === undefined ? "" : ` name="${attribute(file.filename)}"`;
  return `<file${name} type="${attribute(file.mediaType)}">\n${text}\n</file>`;
}

/** The beginning of a text, and how to get the rest, when it is longer than `most` characters. */
export function beginningOf(text: string, most: number, id: string): string {
  if (text.length <= most) return text;
  const end = /[\ud800-\udbff]/.test(text[most - 1] ?? "") ? most - 1 : most;
  const more = `${text.length - end} more characters; read_file({ id: "${id}", from: ${end} }) reads on`;
  return `${text.slice(0, end)}\n[… ${more}]`;
}

/** A name is a stranger's: it stays within its line, its brackets and its quotes. */
function oneLine(name: string, most = 255): string {
  return name.replace(/[\s\]\p{Cc}\p{Cf}]+/gu, " ").slice(0, most);
}

function attribute(name: string): string {
  return oneLine(name).replace(/["<>]/g, "'");
}
