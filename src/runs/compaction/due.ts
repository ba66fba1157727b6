// Whether it is time to compact, before a model call. Looks at what came since the last call, never at the whole history.

import type { Message } from "../../events/index.ts";
import { countLedger, messageAt, outermost, unclosedMessages, unclosedWindow } from "../../projection/overlay.ts";
import type { BranchView } from "../../projection/view.ts";
import type { ActiveTurn } from "../turn/active-turn.ts";
import { measurePrompt, type PromptFrame } from "./measure.ts";
import { type CompactionPlan, windowOf } from "./options.ts";

/** Why it is time; stored with the compaction. */
export type DueReason = "force" | "share" | "cold" | "tokens" | "turns" | "messages" | "overflow";

export interface Due {
  readonly reason: DueReason;
  /** The size of the prompt before. */
  readonly before: number;
}

/** What the prompts of a turn consist of besides the conversation. */
export function frameOf({ plan: { model, instructions, toolSpecs } }: Pick<ActiveTurn, "plan">): PromptFrame {
  return { model, instructions, tools: toolSpecs };
}

/** Why the next call's prompt should be shorter; undefined when it need not be. */
export function findDue(turn: ActiveTurn, view: BranchView): Due | undefined {
  const { compaction: plan } = turn.plan;
  const { compaction: progress } = turn;
  const { tokens: before } = measurePrompt(view, frameOf(turn));
  if (plan.isForced && !progress.isForced) return { reason: "force", before };
  if (!plan.isProactive) return undefined;
  const lastCallAt = progress.lastCallAt ?? lastReplyAt(view);
  const isCold = lastCallAt !== undefined && turn.context.clock.now() - lastCallAt > plan.cacheMs;
  const reason = reasonFor(plan, { before, isCold, window: windowOf(plan, turn.plan.model) }, view);
  return reason && { reason, before };
}

function reasonFor(
  plan: CompactionPlan,
  { before, isCold, window }: { before: number; isCold: boolean; window: number | undefined },
  view: BranchView,
): DueReason | undefined {
  if (window !== undefined && before >= plan.at * window) return "share";
  if (window !== undefined && isCold && before >= plan.coldAt * window) return "cold";
  if (plan.tokens !== undefined && before >= plan.tokens) return "tokens";
  if (plan.turns !== undefined && hasTurns(view, plan.turns)) return "turns";
  const isLong = plan.messages !== undefined && countFresh(view) >= plan.messages;
  return isLong ? "messages" : undefined;
}

/** How large a prompt may become, in tokens, before this plan shortens it; undefined when only counts decide. */
export function nextAt(plan: CompactionPlan, window: number | undefined): number | undefined {
  if (!plan.isProactive) return undefined;
  const bounds = [window !== undefined ? Math.floor(plan.at * window) : undefined, plan.tokens];
  const known = bounds.filter((bound) => bound !== undefined);
  return known.length > 0 ? Math.min(...known) : undefined;
}

/** How many messages a model sees. */
export function countSeen(view: BranchView): number {
  return view.window.length + unclosedWindow(view).length;
}

/**
 * How many messages a model sees that no compaction has dealt with. What one shows and keeps doesn't count: it can't become
 * shorter, so counting it would make a run compact again before every call.
 */
function countFresh(view: BranchView): number {
  const total = countLedger(view) + unclosedMessages(view).length;
  return outermost(view.overlays).reduce((left, { from, to }) => left - (to - from), total);
}

/** Whether a model sees messages of so many turns, the open one included, that no compaction has dealt with. */
function hasTurns(view: BranchView, turns: number): boolean {
  let count = view.staged.length + (view.open ? 1 : 0);
  let last: string | undefined;
  for (let at = countLedger(view) - 1; at >= 0 && count < turns; at--) {
    const over = view.overlays.find(({ from, to }) => from <= at && at < to);
    if (over) {
      at = over.from;
      continue;
    }
    const { turnId } = messageAt(view, at);
    if (turnId !== last) count++;
    last = turnId;
  }
  return count >= turns;
}

/** When a model last answered on this branch, as far as its messages tell. */
function lastReplyAt({ open, window }: BranchView): number | undefined {
  const isReply = ({ role }: Message) => role === "assistant";
  return (open?.messages.findLast(isReply) ?? window.at(-1))?.createdAt;
}
