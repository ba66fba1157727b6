// Where each message of a prompt comes from: the branch's messages, what compactions show, and what hooks put there.

import type { PromptMessage } from "../../models/index.ts";
import type { RebuiltRequest } from "../../models/provenance.ts";
import type { BranchView } from "../../projection/index.ts";
import { countLedger, outermost, unclosedMessages } from "../../projection/overlay.ts";
import type { PromptSource } from "../../wire/index.ts";
import { pinsOf } from "../compaction/pins.ts";

/** The sources of a rebuilt request's messages, one for each. */
export function sourcesOf(view: BranchView, { built, edits }: Pick<RebuiltRequest, "built" | "edits">): PromptSource[] {
  const tell = sourceTeller(view);
  const sources = built.map(tell);
  for (const { at, remove, insert } of edits.slice().reverse()) {
    const replaced = sources.slice(at, at + remove);
    const hooked = insert.map((_, i): PromptSource => {
      const before = insert.length === remove ? replaced[i] : undefined;
      return { type: "hook", ...(before?.type === "message" && { messageId: before.messageId }) };
    });
    sources.splice(at, remove, ...hooked);
  }
  return sources;
}

/** Prepared messages keep the id of the message that they were made of; instructions have none. */
function sourceTeller(view: BranchView): (message: PromptMessage) => PromptSource {
  const compactions = new Map<string, string>();
  const keepers = new Map<string, string>();
  for (const { id, replacements, kept } of view.overlays) {
    for (const message of replacements) compactions.set(message.id, id);
    for (const { message } of kept) keepers.set(message.id, id);
  }
  const cleared = clearingsOf(view);
  const pins = pinsOf(view);
  return (message) => {
    const { id } = message as { readonly id?: string };
    if (id === undefined) return { type: "instructions" };
    const compactionId = compactions.get(id);
    if (compactionId !== undefined) return { type: "compaction", compactionId };
    const keptBy = keepers.get(id);
    const clearedBy = cleared.get(id);
    return {
      ...{ type: "message", messageId: id },
      ...(keptBy !== undefined && { keptBy }),
      ...(pins.has(id) && { isPinned: true }),
      ...(clearedBy && { clearedBy }),
    };
  };
}

/** The clearings of each message's results. */
function clearingsOf(view: BranchView): Map<string, string[]> {
  const found = new Map<string, string[]>();
  if (view.cleared.length === 0) return found;
  const count = countLedger(view);
  const unclosed = unclosedMessages(view);
  for (const { at, id } of view.cleared) {
    const message = at < count ? view.messages[at - view.skipped] : unclosed[at - count];
    if (message) found.set(message.id, [...new Set([...(found.get(message.id) ?? []), id])]);
  }
  return found;
}

/** The compaction that hides a message from models, if one does. */
export function hiddenBy(view: BranchView, messageId: string): string | undefined {
  const count = countLedger(view);
  const held = view.messages.findIndex(({ id }) => id === messageId);
  const open = held < 0 ? unclosedMessages(view).findIndex(({ id }) => id === messageId) : -1;
  if (held < 0 && open < 0) return undefined;
  const at = held < 0 ? count + open : view.skipped + held;
  const over = outermost(view.overlays).find(({ from, to }) => from <= at && at < to);
  return over?.kept.some((kept) => kept.at === at) ? undefined : over?.id;
}
