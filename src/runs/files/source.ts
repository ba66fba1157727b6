// The stored files of a branch, for the calls of a run on it.

import type { BranchRef } from "../../log/store.ts";
import { findContent, readContent } from "../../sessions/content.ts";
import type { Context } from "../../sessions/context.ts";
import { readText } from "../../sessions/texts.ts";
import type { FileSource } from "./resolver.ts";

export function branchFiles(context: Context, ref: BranchRef): FileSource {
  return {
    find: (id) => findContent(context, ref, id),
    read: ({ id }) => readContent(context, ref, id),
    text: ({ id }, mediaType) => readText(context, ref, { id, mediaType }),
  };
}
