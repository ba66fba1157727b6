import { refuse } from "./refusals.ts";
import type { Blobs, Store } from "./store.ts";

/** The part of a store that keeps content; `store_unsupported` when the store leaves it out. */
export function needBlobs({ blobs }: Pick<Store, "blobs">): Blobs {
  if (!blobs) throw refuse.noContent();
  return blobs;
}
