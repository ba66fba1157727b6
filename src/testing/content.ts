import { BoughError } from "../base/errors.ts";
import type { BranchRef } from "../log/branch-ref.ts";
import type { ContentRecord, NewContentRow } from "../log/content.ts";
import { needContent } from "../log/need-content.ts";
import type { Store } from "../log/store.ts";

/** Stores bytes in one go. */
export async function putBytes(
  store: Pick<Store, "content">,
  ref: BranchRef,
  { bytes, id: _, ...row }: NewContentRow & { bytes: Uint8Array; id?: string },
): Promise<ContentRecord> {
  const writer = await needContent(store).write(ref);
  try {
    await writer.add(bytes);
    await writer.finish();
    return await writer.commit(row);
  } catch (error) {
    await writer.abort();
    throw error;
  }
}

/** Content with all its bytes; undefined when the branch does not see it. */
export async function getBytes(
  store: Pick<Store, "content">,
  ref: BranchRef,
  contentId: string,
): Promise<{ record: ContentRecord; bytes: Uint8Array } | undefined> {
  const content = needContent(store);
  const record = await content.get(ref, contentId);
  if (!record) return undefined;
  try {
    const pieces: Uint8Array[] = [];
    for await (const piece of content.read(ref, contentId)) pieces.push(piece);
    return { record, bytes: new Uint8Array(Buffer.concat(pieces)) };
  } catch (error) {
    // Deleted meanwhile.
    if (BoughError.is(error, "content_not_found")) return undefined;
    throw error;
  }
}
