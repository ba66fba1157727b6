// What listings show of a branch without reading its log: a few keys of its row, patched together with the facts.

import type { Json, JsonObject } from "../base/json.ts";
import type { Draft, Fact } from "../events/index.ts";
import { fold } from "./fold.ts";
import type { BranchView } from "./view.ts";

/** The keys of a branch row's header. */
export interface RowHeader {
  readonly name?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly metadata?: JsonObject;
  /** Messages of closed turns. */
  readonly messages?: number;
  /** The turn that is not closed, if there is one. */
  readonly turn?: string;
  readonly fork?: { readonly messageId?: string; readonly messages: number };
}

/** The header of a whole view. */
export function headerRow(view: BranchView): JsonObject {
  const { name, description, tags, metadata } = view.header;
  const turn = view.open?.id ?? view.staged.at(-1)?.id;
  const fork = view.fork && {
    messages: view.fork.messages,
    ...(view.fork.messageId && { messageId: view.fork.messageId }),
  };
  return {
    ...(name !== undefined && { name }),
    ...(description !== undefined && { description }),
    ...(tags && { tags: [...tags] as Json[] }),
    ...(Object.keys(metadata).length > 0 && { metadata }),
    messages: view.messages.length,
    ...(turn && { turn }),
    ...(fork && { fork }),
  };
}

/** The header patch that goes with facts of a turn: what they change, and nothing else. */
export function turnPatch(view: BranchView, drafts: readonly Draft[]): JsonObject {
  const scratch = { ...view, messages: [], turns: [], interactions: [], staged: view.staged.slice() };
  for (const draft of drafts) fold(scratch, { ...draft, seq: scratch.seq + 1 } as Fact);
  const turn = scratch.open?.id ?? scratch.staged.at(-1)?.id ?? null;
  const before = view.open?.id ?? view.staged.at(-1)?.id ?? null;
  return {
    ...(scratch.messages.length > 0 && { messages: view.messages.length + scratch.messages.length }),
    ...(turn !== before && { turn }),
  };
}
