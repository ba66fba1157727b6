// What listings show of a branch without reading its log: a few keys of its row, patched together with the facts.

import type { JsonObject } from "../base/json.ts";
import type { Draft, Fact } from "../events/index.ts";
import { fold } from "./fold.ts";
import { type BranchView, copyUnclosed, copyView } from "./view.ts";

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
  /** The interactions that wait for an answer; absent when none does. */
  readonly asks?: readonly string[];
  readonly fork?: { readonly messageId?: string; readonly messages: number };
  /** The id of the branch's first own fact: tells it from another branch that had its id before. */
  readonly born?: string;
  /** Who staged the complete turns that wait to be saved, if any do. */
  readonly stagedBy?: string;
}

/** The header patch that goes with facts: what they change, and nothing else. */
export function turnPatch(view: BranchView, drafts: readonly Draft[]): JsonObject {
  const rewrites = drafts.some(({ type }) => type === "branch.reverted" || type === "history.compacted");
  // Facts of a turn only add messages, so they can be folded without those that are there.
  const after = rewrites ? copyView(view) : copyUnclosed(view);
  for (const draft of drafts) fold(after, { ...draft, seq: after.seq + 1 } as Fact);
  const messages = after.messages.length + (rewrites ? 0 : view.messages.length);
  const turn = unclosedTurn(after);
  const patch: JsonObject = {};
  if (messages !== view.messages.length) patch.messages = messages;
  if (turn !== unclosedTurn(view)) patch.turn = turn;
  if (drafts.some(isAboutQuestions) || after.interactions.length !== view.interactions.length) {
    patch.asks = asksOf(after);
  }
  return patch;
}

/** Whether the fact opens or closes an interaction: its patch has to be decided on the newest view. */
export function isAboutQuestions({ type }: Pick<Draft, "type">): boolean {
  return type === "interaction.opened" || type === "interaction.answered" || type === "interaction.expired";
}

function asksOf({ interactions }: BranchView): string[] | null {
  return interactions.length === 0 ? null : interactions.map(({ id }) => id);
}

function unclosedTurn({ open, staged }: BranchView): string | null {
  return open?.id ?? staged.at(-1)?.id ?? null;
}
