// Content: uploads stored once per session under the hash of their bytes, visible to a branch and its descendants.

import { BoughError } from "../base/errors.ts";
import { encodeJson, metadataLimits } from "../base/json.ts";
import { checkOptions, optionKeys } from "../base/options.ts";
import { needBlobs } from "../log/need-blobs.ts";
import type { ContentRecord } from "../log/store.ts";
import { resolveBranch } from "./branches.ts";
import type { Context, Scope } from "./context.ts";

/** How messages refer to stored content. */
export type ContentUri = `bough-content://${string}`;

/** Stored bytes as messages refer to them. */
export interface Content extends ContentRecord {
  readonly uri: ContentUri;
}

/** Bytes to store, and what they are. */
export interface NewContent {
  readonly bytes: Uint8Array;
  readonly mediaType?: string;
  readonly name?: string;
}

const putContentKeys = optionKeys<NewContent>({ bytes: true, mediaType: true, name: true });

export async function putContent(context: Context, scope: Scope, content: NewContent): Promise<Content> {
  checkOptions("The options of putContent", content, putContentKeys);
  const { mediaType = "application/octet-stream", name } = content;
  if (!(content.bytes instanceof Uint8Array)) {
    throw new BoughError("invalid_argument", "Content must be a Uint8Array.");
  }
  for (const said of name === undefined ? [mediaType] : [mediaType, name]) {
    if (typeof said !== "string") throw new BoughError("invalid_argument", "mediaType and name must be strings.");
    encodeJson(said, "A content's mediaType or name", metadataLimits);
  }
  // Before anything is waited for: the caller may use its own for something else, and the id is that of these.
  const bytes = new Uint8Array(content.bytes);
  const ref = await resolveBranch(context, scope);
  const id = await sha256(bytes);
  const record = await needBlobs(context.store).put(ref, { id, bytes, mediaType, ...(name !== undefined && { name }) });
  return withUri(record);
}

export async function getContent(
  context: Context,
  scope: Scope,
  idOrUri: string,
): Promise<{ content: Content; bytes: Uint8Array }> {
  const ref = await resolveBranch(context, scope);
  const id = contentId(idOrUri);
  const found = await needBlobs(context.store).get(ref, id);
  if (found) return { content: withUri(found.record), bytes: found.bytes };
  throw new BoughError("content_not_found", `Branch "${ref.branchId}" has no content "${id}".`, {
    data: { ...ref, contentId: id },
  });
}

export async function listContent(context: Context, scope: Scope): Promise<Content[]> {
  const ref = await resolveBranch(context, scope);
  return (await needBlobs(context.store).list(ref)).map(withUri);
}

export async function deleteContent(context: Context, scope: Scope, idOrUri: string): Promise<boolean> {
  const ref = await resolveBranch(context, scope);
  return needBlobs(context.store).delete(ref, contentId(idOrUri));
}

function withUri(record: ContentRecord): Content {
  return { ...record, uri: `bough-content://sha256/${record.id}` };
}

function contentId(idOrUri: string): string {
  const id = String(idOrUri).replace(/^bough-content:\/\/sha256\//, "");
  if (/^[0-9a-f]{64}$/.test(id)) return id;
  throw new BoughError("invalid_argument", `"${idOrUri}" is not a content id.`, { data: { contentId: idOrUri } });
}

async function sha256(bytes: Uint8Array): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes as Uint8Array<ArrayBuffer>));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
