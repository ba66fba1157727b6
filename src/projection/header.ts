// What listings show of a branch without reading its log: a few keys of its row, patched together with the facts.

import type { JsonObject } from "../base/json.ts";
import type { AnyDraft } from "../events/codec.ts";
import type { Draft, Fact, Ownership, UnknownFact } from "../events/index.ts";
import { firstWords } from "./first-words.ts";
import { fold } from "./fold.ts";
import { addToLedger, countLedger, countShown, isHard, unclosedMessages } from "./overlay.ts";
import { type BranchView, copyUnclosed, copyView, type Revert, type TurnStatus } from "./view.ts";

/** The keys of a branch row's header. */
export interface RowHeader extends Ownership {
  readonly name?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly metadata?: JsonObject;
  /** Messages of closed turns, as people see them. */
  readonly messages?: number;
  /** Whether people see something else than the log's messages, because they were compacted hard. */
  readonly compacted?: true;
  /** The turn that is not closed, if there is one and it does not sleep. */
  readonly turn?: string;
  /** The open turn that sleeps: nobody has to look for it, so it is not listed as open. */
  readonly asleep?: string;
  /** The interactions that wait for an answer; absent when none does. */
  readonly asks?: readonly string[];
  /** How many inputs wait for a turn; absent when none does. */
  readonly queued?: number;
  /** How many background tasks have not ended; absent when none. */
  readonly tasks?: number;
  /** The branch's first own message: its id, and how its text begins. */
  readonly first?: { readonly id: string; readonly words: string };
  /** The agent of the newest turn. */
  readonly agent?: string;
  /** How the newest closed turn ended, unless it was committed. */
  readonly ended?: Exclude<TurnStatus, "committed">;
  readonly reverts?: readonly Revert[];
  readonly fork?: { readonly messageId?: string; readonly messages: number };
  /** The id of the branch's first own fact: tells it from another branch that had its id before. */
  readonly born?: string;
  /** What the branch's own closed turns used; absent when nothing. */
  readonly usage?: JsonObject;
  /** Who staged the complete turns that wait to be saved, if any do. */
  readonly stagedBy?: string;
  /** The branch-scoped state, without that of unclosed turns, or the length of its JSON where that is too long for a row. */
  readonly state?: JsonObject | number;
}

/** Stores may write a row with every append, so what it carries for people to see is kept short. */
const longestState = 2048;

/** What a view becomes with the next facts, which the log may not have yet. */
export interface Ahead {
  readonly view: BranchView;
  /** Where the view was; once it is elsewhere, this holds no more. */
  readonly seq: number;
  /** Without the messages and records of closed turns that the view has, unless the facts rewrite those. */
  readonly after: BranchView;
  readonly rewrites: boolean;
  /** What the facts change in the header of the branch's row, and nothing else. */
  readonly patch: JsonObject;
}

/** Folds the facts that follow a view's last one, without changing the view. */
export function foldAhead(view: BranchView, facts: readonly (Fact | UnknownFact)[]): Ahead {
  const rewrites = facts.some((fact) => rewritesHistory(view, fact));
  const after = rewrites ? copyRewritten(view, facts) : copyUnclosed(view);
  for (const fact of facts) fold(after, fact);
  const messages = countShown(after);
  const turn = unclosedTurn(after);
  const patch: JsonObject = {};
  if (messages !== countShown(view)) patch.messages = messages;
  if (turn !== unclosedTurn(view)) patch.turn = turn;
  if (after.open?.asleep !== view.open?.asleep) patch.asleep = after.open?.asleep ? after.open.id : null;
  if (rewrites && after.overlays.some(isHard) !== view.overlays.some(isHard)) {
    patch.compacted = after.overlays.some(isHard) || null;
  }
  if (facts.some(isAboutQuestions) || after.interactions.length !== view.interactions.length) {
    patch.asks = asksOf(after);
  }
  if (after.usage !== view.usage) patch.usage = after.usage;
  if (after.queue !== view.queue) patch.queued = after.queue.length || null;
  if (after.tasks.length !== view.tasks.length) patch.tasks = after.tasks.length || null;
  if (after.state !== view.state) patch.state = shownState(after.state);
  if (after.reverts !== view.reverts) patch.reverts = after.reverts as unknown as JsonObject[];
  Object.assign(patch, patchTurns({ view, after, rewrites }, facts));
  return { view, seq: view.seq, after, rewrites, patch };
}

/** Folds the next fact. A view that does not hold what it needs throws `PartialView`, and is as it was before. */
export function foldNext(view: BranchView, fact: Fact | UnknownFact): void {
  // Facts that only add to a turn look at nothing else.
  if (view.skipped > 0 && rewritesHistory(view, fact)) adopt(foldAhead(view, [fact]));
  else fold(view, fact);
}

/** Whether the fact changes more than it adds. */
function rewritesHistory(view: BranchView, { type }: Fact | UnknownFact): boolean {
  if (type.startsWith("history.") || type === "branch.reverted" || type === "branch.forked") return true;
  return type === "turn.discarded" && (view.overlays.length > 0 || view.cleared.length > 0);
}

/** Facts of a turn only add messages, so they can be folded without those that are there; these can't. */
function copyRewritten(view: BranchView, facts: readonly (Fact | UnknownFact)[]): BranchView {
  if (!facts.every(({ type }) => type.startsWith("history."))) return copyView(view);
  // The ledger stays as it is, so it need not be copied.
  const { messages, skipped, shown, window, turns, skippedTurns } = view;
  return { ...copyUnclosed(view), messages, skipped, shown, window, turns, skippedTurns };
}

/** Whether it still says what the view becomes: nothing was folded since, and nothing was put in front of it. */
export function isCurrent({ view, seq, after, rewrites }: Ahead, entry: { readonly view: BranchView }): boolean {
  return view === entry.view && seq === view.seq && (!rewrites || after.skipped === view.skipped);
}

/** Makes the view what folding the facts into it would make it: the log has them now. */
export function adopt({ view, after, rewrites }: Ahead): void {
  const { messages, skipped, shown, window, turns, skippedTurns } = view;
  Object.assign(view, after);
  if (rewrites) return;
  // Only what is new is in `after`: the view goes on with its own arrays. Hot in every append.
  view.messages = messages;
  view.skipped = skipped;
  view.shown = shown;
  view.window = window;
  view.turns = turns;
  view.skippedTurns = skippedTurns;
  addToLedger(view, after.messages);
  for (const turn of after.turns) turns.push(turn);
}

/** The header patch that goes with drafts. */
export function turnPatch(view: BranchView, drafts: readonly Draft[]): JsonObject {
  return foldAhead(
    view,
    drafts.map((draft, i) => ({ ...draft, seq: view.seq + 1 + i }) as Fact),
  ).patch;
}

/** The state as the row shows it; null when there is none. */
export function shownState(state: JsonObject): JsonObject | number | null {
  if (Object.keys(state).length === 0) return null;
  const { length } = JSON.stringify(state);
  return length <= longestState ? state : length;
}

/** Whether the fact opens or closes an interaction. */
function isAboutQuestions({ type }: { readonly type: string }): boolean {
  return type === "interaction.opened" || type === "interaction.answered" || type === "interaction.expired";
}

/** Whether a draft's patch has to be decided on the newest view: others answer and queue meanwhile, and tasks end. */
export function needsNewest(draft: AnyDraft): boolean {
  if (draft.type === "task.started" || draft.type === "task.ended") return true;
  return isAboutQuestions(draft) || (draft.type === "message.added" && draft.inputId !== undefined);
}

function asksOf({ interactions }: BranchView): string[] | null {
  return interactions.length === 0 ? null : interactions.map(({ id }) => id);
}

function unclosedTurn({ open, staged }: BranchView): string | null {
  if (open?.asleep) return null;
  return open?.id ?? staged.at(-1)?.id ?? null;
}

/** The turn of a branch that is not closed, as its row tells. */
export function openTurnIn({ turn, asleep }: Pick<RowHeader, "turn" | "asleep">): string | undefined {
  return turn ?? asleep ?? undefined;
}

/** What lists show of a branch beside its counts. */
export interface ShownTurns {
  readonly agent?: string;
  readonly ended?: Exclude<TurnStatus, "committed">;
  readonly first?: { readonly id: string; readonly words: string };
}

/** The same as a view tells it that holds all messages. */
export function shownTurns(view: BranchView): ShownTurns {
  const at = view.shared - view.skipped;
  const first = view.messages[at] ?? unclosedMessages(view)[at - view.messages.length];
  return { ...newestTurns(view), ...(first && { first: { id: first.id, words: firstWords(first) } }) };
}

/** The agent of the newest turn, and how the newest closed one of the branch's own ended. */
function newestTurns({
  open,
  staged,
  turns,
  fork,
}: Pick<BranchView, "open" | "staged" | "turns" | "fork">): ShownTurns {
  const closed = turns.at(-1);
  const agent = (open ?? staged.at(-1) ?? closed)?.runs.at(-1)?.agentId;
  const isOwn = closed && closed.from > (fork?.from.seq ?? 0);
  return {
    ...(agent !== undefined && { agent }),
    ...(isOwn && closed.status !== "committed" && closed.reason !== "reverted" && { ended: closed.status }),
  };
}

/** Most turns change nothing of it, and rows are written with every append. */
function patchTurns(
  { view, after, rewrites }: Pick<Ahead, "view" | "after" | "rewrites">,
  facts: readonly (Fact | UnknownFact)[],
) {
  const patch: JsonObject = {};
  const before = newestTurns(view);
  const isKnown = view.turns.length > 0 || view.skippedTurns === 0;
  const now = newestTurns(rewrites || after.turns.length > 0 ? after : { ...after, turns: view.turns });
  if (!isKnown || now.agent !== before.agent) patch.agent = now.agent ?? null;
  if (!isKnown || now.ended !== before.ended) patch.ended = now.ended ?? null;
  const own = (of: BranchView) => countLedger(of) + unclosedMessages(of).length - of.shared;
  if (own(view) > 0) return own(after) > 0 ? patch : { ...patch, first: null };
  const first = facts.find((fact): fact is Fact<"message.added"> => fact.type === "message.added");
  return first ? { ...patch, first: { id: first.id, words: firstWords(first) } } : patch;
}
