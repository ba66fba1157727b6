// Finds what a long branch holds by id, without walking it.

import type { Message } from "../events/index.ts";
import type { BranchView, TurnRecord } from "../projection/index.ts";

export interface MessageIndex {
  /** The messages that people see, which it is made of. */
  readonly of: readonly Message[];
  readonly messages: Map<string, number>;
  /** By position of the ledger; the same map as long as people see the ledger. */
  readonly ledger: Map<string, number>;
  readonly turns: Map<string, TurnRecord>;
}

/** The index of a view: the one known, extended, or a new one when people see other messages than it was made of. */
export function indexView(view: BranchView, known: MessageIndex | undefined): MessageIndex {
  const shown = view.shown!;
  const index = known?.of === shown ? known : newIndex(shown, shown === view.messages);
  const { messages, ledger, turns } = index;
  for (let i = messages.size; i < shown.length; i++) messages.set(shown[i]!.id, i);
  for (let i = ledger.size; i < view.messages.length; i++) ledger.set(view.messages[i]!.id, i);
  for (let i = turns.size; i < view.turns.length; i++) turns.set(view.turns[i]!.id, view.turns[i]!);
  return index;
}

function newIndex(of: readonly Message[], isLedger: boolean): MessageIndex {
  const messages = new Map<string, number>();
  return { of, messages, ledger: isLedger ? messages : new Map(), turns: new Map() };
}
