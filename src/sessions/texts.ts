// The texts of stored files: what stands in them, or what is extracted from them.
//   Texts-1. A text is extracted once for the bytes of a session: it is content itself, and its source's row names it.

import { BoughError } from "../base/errors.ts";
import { canExtract, decodeText, extractInWorker, isTextType } from "../content/index.ts";
import type { BranchRef } from "../log/store.ts";
import type { TextPiece } from "../tools/index.ts";
import { findContent, putContent, readContent, updateContent } from "./content.ts";
import type { Context } from "./context.ts";

/** A file as far as its text depends on it. */
interface TextSource {
  readonly id: string;
  readonly mediaType: string;
}

/** The text of a file; undefined if files of that type have none that can be read. */
export async function readText(context: Context, ref: BranchRef, file: TextSource): Promise<string | undefined> {
  const mediaType = file.mediaType.split(";")[0]!.trim().toLowerCase();
  if (canExtract(mediaType)) {
    const source = { id: file.id, mediaType };
    return (await readDerived(context, ref, source)) ?? (await derive(context, ref, source));
  }
  return isTextType(mediaType) ? decodeText(await readContent(context, ref, file.id)) : undefined;
}

/** The text that was extracted before. */
async function readDerived(
  context: Context,
  ref: BranchRef,
  { id, mediaType }: TextSource,
): Promise<string | undefined> {
  const textId = (await findContent(context, ref, id)).texts?.[mediaType];
  if (textId === undefined) return undefined;
  try {
    return decodeText(await readContent(context, ref, textId));
  } catch (error) {
    // Deleted, or stored by a branch that this one doesn't see: it is made again.
    if (BoughError.is(error, "content_not_found")) return undefined;
    throw error;
  }
}

/** Texts that are being extracted, so that calls at the same time share the work. */
const deriving = new Map<string, Promise<string>>();

function derive(context: Context, ref: BranchRef, source: TextSource & { mediaType: string }): Promise<string> {
  const key = JSON.stringify([ref.sessionId, ref.branchId, source.id, source.mediaType]);
  let text = deriving.get(key);
  if (!text) {
    text = deriveAnew(context, ref, source).finally(() => deriving.delete(key));
    deriving.set(key, text);
  }
  return text;
}

async function deriveAnew(context: Context, ref: BranchRef, { id, mediaType }: TextSource): Promise<string> {
  if (!canExtract(mediaType)) return "";
  const text = await extractInWorker(await readContent(context, ref, id), mediaType, context.clock);
  const bytes = new TextEncoder().encode(text);
  if (bytes.length === 0) return text;
  const derived = await putContent(context, ref, { bytes, mediaType: "text/plain", origin: "derived", of: id });
  await updateContent(context, ref, id, { texts: { [mediaType]: derived.id } });
  return text;
}

/** A piece of a text: `from` up to, but not including, `to`. `invalid_argument` if the file has no text. */
export async function readTextPiece(
  context: Context,
  ref: BranchRef,
  file: TextSource,
  { from = 0, to }: { from?: number | undefined; to?: number | undefined } = {},
): Promise<TextPiece> {
  const whole = await readText(context, ref, file);
  if (whole === undefined) {
    throw new BoughError("invalid_argument", `Files of type ${file.mediaType} have no text that can be read.`);
  }
  const start = Math.min(Math.max(0, from), whole.length);
  const end = Math.min(Math.max(start, to ?? whole.length), whole.length);
  return { text: whole.slice(start, end), from: start, to: end, length: whole.length };
}
