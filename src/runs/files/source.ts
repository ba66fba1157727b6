// The stored files of a branch, for the calls of a run on it.

import type { BranchRef } from "../../log/store.ts";
import { findContent, readContent } from "../../sessions/content.ts";
import type { Context } from "../../sessions/context.ts";
import { readText } from "../../sessions/texts.ts";
import { addressOf, forgetReference, referTo } from "./elsewhere.ts";
import type { FilePlan } from "./options.ts";
import type { FileSource } from "./resolver.ts";

export function branchFiles(
  context: Context,
  ref: BranchRef,
  { plan, signal }: { readonly plan: FilePlan; readonly signal?: AbortSignal },
): FileSource {
  const { services, uploadOptions } = plan;
  const uploading = { services, ...(uploadOptions && { options: uploadOptions }), ...(signal && { signal }) };
  return {
    now: () => context.clock.now(),
    find: (id) => findContent(context, ref, id),
    read: ({ id }) => readContent(context, ref, id),
    text: ({ id }, mediaType) => readText(context, ref, { id, mediaType }),
    reference: (file, model) => referTo({ context, ref }, uploading, { file, model }),
    forget: (id, model) => forgetReference(context, ref, { id, model }),
    address: ({ id }) => addressOf(context, ref, id),
  };
}
