import type { ContentStore } from "./content.ts";
import { refuse } from "./refusals.ts";
import type { Store } from "./store.ts";

/** The part of a store that keeps content; `store_unsupported` when the store leaves it out. */
export function needContent({ content }: Pick<Store, "content">): ContentStore {
  if (!content) throw refuse.noContent();
  return content;
}
