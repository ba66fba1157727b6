// What a model reads in the place of a file that it is not sent.

import { sizeText } from "../../base/size-text.ts";
import type { FilePart } from "../../events/files.ts";

type Named = Pick<FilePart, "mediaType" | "filename">;

/** `[image tree.png, 2.1 MB: not sent (too large for this call)]`. */
export function noteOf(file: Named, size: number | undefined, why: string): string {
  const kind = /^(image|audio|video)(\/|$)/.exec(file.mediaType)?.[1] ?? "file";
  const name = file.filename === undefined ? file.mediaType : oneLine(file.filename);
  const about = [`${kind} ${name}`, ...(size === undefined ? [] : [sizeText(size)])].join(", ");
  return `[${about}: ${why}]`;
}

/** A text file as text, with its name. */
export function quoteFile(file: Named, text: string): string {
  const name = file.filename === undefined ? "" : ` name="${oneLine(file.filename).replaceAll('"', "'")}"`;
  return `<file${name} type="${file.mediaType}">\n${text}\n</file>`;
}

/** The beginning of a text, and how to get the rest, when it is longer than `most` characters. */
export function beginningOf(text: string, most: number, id: string): string {
  if (text.length <= most) return text;
  const end = /[\ud800-\udbff]/.test(text[most - 1] ?? "") ? most - 1 : most;
  const more = `${text.length - end} more characters; read_file({ id: "${id}", from: ${end} }) reads on`;
  return `${text.slice(0, end)}\n[… ${more}]`;
}

function oneLine(name: string): string {
  return name.replace(/[\s\]]+/g, " ").slice(0, 255);
}
