// From what a person points at (a message, an index, a position) to a place in the log where a branch can be cut. People
// count the messages that they see; facts count those of the ledger. Both as if every unclosed turn closed now.

import { BoughError } from "../base/errors.ts";
import { callsOf, type Message, type OverlayRecord, type ToolResultPart } from "../events/index.ts";
import { type BranchRef, refuse } from "../log/index.ts";
import type { BranchView, Cleared, OpenTurn, Overlay, TurnRecord } from "../projection/index.ts";
import {
  countLedger,
  countShown,
  covers,
  isHard,
  messageAt,
  outermost,
  placeShown,
  type ShownPlace,
  toRecord,
  unclosedMessages,
} from "../projection/overlay.ts";
import { resultsId } from "../projection/tools.ts";
import type { Context } from "./context.ts";

/** One of these; none means the latest message. */
export interface Target {
  /** Up to and including this message. */
  readonly messageId?: string;
  /** How many messages to keep: index 4 keeps messages 0 to 3. */
  readonly messageIndex?: number;
  /** Up to and including this position of the log. */
  readonly seq?: number;
  /** Up to and including the position that this checkpoint of the branch names. */
  readonly checkpointId?: string;
}

/** Where to cut: the facts up to `seq` give at least the first `messages` messages of the ledger. */
export interface Position {
  readonly seq: number;
  readonly messages: number;
  /** How many of them people see. */
  readonly shown: number;
  /** Whether some of them were compacted hard. */
  readonly compacted: boolean;
  readonly messageId?: string;
  /** The compactions and clearings that stay in force, when facts up to `seq` say otherwise. */
  readonly inForce?: InForce;
  /** The calls of the last batch that have their results, when some don't. */
  readonly answered?: readonly string[];
  /** The cut leaves calls without their results; one more message answers them. */
  readonly dangles: boolean;
}

/** As facts carry it. */
export interface InForce {
  readonly overlays: (string | OverlayRecord)[];
  readonly cleared: (Omit<Cleared, "callIds"> & { callIds: string[] })[];
}

export function copyCleared({ callIds, ...cleared }: Cleared): InForce["cleared"][number] {
  return { ...cleared, callIds: [...callIds] };
}

/** The view on which a target can be resolved: as much of it as a model sees, or the whole where the target is not in that. */
export async function loadFor(context: Context, ref: BranchRef, target: Target): Promise<BranchView> {
  const { view } = await context.views.loadForRun(ref);
  return isIn(view, target) ? view : (await context.views.load(ref)).view;
}

function isIn(view: BranchView, { messageId, messageIndex }: Target): boolean {
  if (view.skipped === 0) return true;
  if (messageIndex !== undefined || view.messages.length === 0) return false;
  const id = messageId ?? view.messages.at(-1)!.id;
  if (unclosedMessages(view).some((message) => message.id === id)) return true;
  const at = heldAt(view, id);
  return at !== undefined && !view.overlays.some((each) => isHard(each) && covers(each, { from: at, to: at + 1 }));
}

/** The position of a message in the ledger, among those that a partial view holds. */
function heldAt({ messages, skipped }: BranchView, messageId: string): number | undefined {
  const found = messages.findLastIndex(({ id }) => id === messageId);
  return found < 0 ? undefined : skipped + found;
}

/** With `goBack`, a position to which the branch itself can return; a new branch can begin anywhere. */
export async function resolvePosition(
  context: Context,
  ref: BranchRef,
  view: BranchView,
  target: Target,
  options: { goBack?: boolean } = {},
): Promise<Position> {
  const said = Object.entries(target).filter(([, point]) => point !== undefined);
  if (said.length > 1) {
    throw new BoughError("invalid_argument", "Give only one of messageId, messageIndex, seq or checkpointId.", {
      data: { ...ref, ...Object.fromEntries(said) },
    });
  }
  const { checkpointId } = target;
  const named = checkpointId === undefined ? target.seq : await seqOfCheckpoint(context, ref, checkpointId);
  if (named !== undefined) return positionAt(context, ref, view, named, options);
  const shown = await countUpTo(context, ref, view, target);
  if (shown === 0) {
    const seq = beforeFirstTurn(view);
    return { seq, messages: 0, shown, compacted: false, dangles: false, ...inForceAt(view, seq, { count: 0 }) };
  }
  // Before anything is waited for: the view goes on, and the count belongs to it as it is now.
  const { shown: visible, overlays, cleared, lastOverlay } = view;
  const unclosed = unclosedMessages(view);
  const place = placeOf(view, shown);
  const last = messageAt(view, place.count - 1, unclosed);
  const message = place.cut ? visible![shown - 1]! : last;
  const seq = await seqOf(context, ref, view, place.count - 1, last);
  const compacted = overlays.some((each) => isHard(each) && each.to <= place.count);
  const cut = { messages: place.count, shown, compacted, messageId: message.id, dangles: callsOf(message).length > 0 };
  return { seq, ...cut, ...inForceAt({ overlays, cleared, lastOverlay }, seq, place) };
}

/** Where the ledger is cut after so many messages that people see. */
function placeOf(view: BranchView, shown: number): ShownPlace {
  const closed = countShown(view);
  return shown <= closed ? placeShown(view, shown - 1) : { count: countLedger(view) + shown - closed };
}

/** What is in force in the part of the ledger that stays, unless the facts up to `seq` say just that. */
function inForceAt(
  { overlays, cleared, lastOverlay }: Pick<BranchView, "overlays" | "cleared" | "lastOverlay">,
  seq: number,
  { count, cut }: ShownPlace,
): Pick<Position, "inForce"> {
  if (lastOverlay <= seq && !cut) return {};
  // What models see instead of a range that is cut tells of more than stays.
  const staying = overlays.filter((each) => each.to <= count && (each.id === cut?.id || !cut || !covers(each, cut)));
  const carry = (each: Overlay) => (each.since <= seq ? each.id : toRecord(each));
  return {
    inForce: {
      overlays: staying.map((each) => (each.id === cut?.id ? toRecord(cut) : carry(each))),
      cleared: cleared.filter(({ at }) => at < count).map(copyCleared),
    },
  };
}

/** Refuses a position that the branch can't go back to, because what it had there was reverted away. */
async function checkReachable(context: Context, ref: BranchRef, view: BranchView, then: BranchView): Promise<void> {
  const { seq } = then;
  const now = allMessages(view);
  const isStart = allMessages(then).every(({ id }, i) => id === now[i]?.id);
  if (isStart && (await isOnPath(context, ref, view, seq))) return;
  const sentence = `Position ${seq} of branch "${ref.branchId}" was removed by a revert; fork there instead.`;
  throw new BoughError("position_not_on_branch", sentence, { data: { ...ref, seq, newest: view.seq } });
}

/** Going back from the newest fact, a revert jumps to where it went. */
async function isOnPath(context: Context, ref: BranchRef, view: BranchView, seq: number): Promise<boolean> {
  let at = view.seq;
  for await (const { facts } of context.journal.pieces(ref, { after: seq, before: at + 1, reverse: true })) {
    for (const fact of facts) if (fact.seq === at) at = fact.type === "branch.reverted" ? fact.to : at - 1;
    if (at <= seq) break;
  }
  return at === seq;
}

async function positionAt(
  context: Context,
  ref: BranchRef,
  view: BranchView,
  seq: number,
  { goBack = false }: { goBack?: boolean },
): Promise<Position> {
  if (!Number.isInteger(seq) || seq < 0 || seq > view.seq) throw refuse.notOnBranch(ref, seq, view.seq);
  const then = await (goBack ? context.views.loadAt(ref, seq) : context.views.loadPlace(ref, view, seq));
  if (goBack) await checkReachable(context, ref, view, then);
  const all = allMessages(then);
  const last = unclosedTurns(then).at(-1)?.messages.at(-1) ?? all.at(-1);
  const dangles = last !== undefined && callsOf(last).length > 0;
  const unseen = dangles ? 1 : 0;
  const shown = countShown(then) + unclosedMessages(then).length - unseen;
  const position = {
    ...{ seq, messages: then.skipped + all.length - unseen, shown, compacted: then.overlays.some(isHard), dangles },
    ...(last && { messageId: last.id }),
    ...(goBack && inForceOf(view, then)),
  };
  const given = last?.role === "tool" ? resultsOf(last) : [];
  const isPart = given.length > 0 && given.length < callsOf(all.at(-2)!).length;
  return isPart ? { ...position, answered: given.map(({ toolCallId }) => toolCallId) } : position;
}

/** What was in force then, for a branch that goes back there. */
function inForceOf(view: BranchView, then: BranchView): Pick<Position, "inForce"> {
  if (view.lastOverlay <= then.seq) return {};
  return { inForce: { overlays: then.overlays.map(toRecord), cleared: then.cleared.map(copyCleared) } };
}

async function seqOfCheckpoint({ store }: Context, ref: BranchRef, checkpointId: string): Promise<number> {
  const found = (await store.listCheckpoints(ref)).find(({ id }) => id === checkpointId);
  if (!found) throw refuse.checkpointNotFound(ref, checkpointId);
  return found.seq;
}

async function countUpTo(context: Context, ref: BranchRef, view: BranchView, target: Target): Promise<number> {
  const { messageId, messageIndex } = target;
  const unclosed = unclosedMessages(view);
  if (messageId !== undefined) {
    const known = shownAt(context, ref, view, messageId);
    if (known !== undefined) return known + 1;
    const found = unclosed.findIndex(({ id }) => id === messageId);
    if (found >= 0) return countShown(view) + found + 1;
    throw await messageMissing(context, ref, view, messageId);
  }
  const closed = countShown(view);
  const total = closed + unclosed.length;
  if (messageIndex === undefined) return closed || total;
  if (!Number.isInteger(messageIndex) || messageIndex < 0 || messageIndex > total) {
    throw new BoughError("invalid_argument", `Message index ${messageIndex} must be from 0 to ${total}.`, {
      data: { messageIndex, messages: total },
    });
  }
  return messageIndex;
}

/** The index of a message among those that people see. */
function shownAt({ views }: Context, ref: BranchRef, view: BranchView, messageId: string): number | undefined {
  if (view.skipped === 0) return views.indexOf(ref, view).messages.get(messageId);
  const at = heldAt(view, messageId);
  return at === undefined ? undefined : countShown(view, at);
}

/** The last fact that belongs to the message; at the end of a complete turn, the last fact before the next turn. */
async function seqOf(
  context: Context,
  ref: BranchRef,
  view: BranchView,
  index: number,
  message: Message,
): Promise<number> {
  const turn = turnOf(context, ref, view, message);
  const next = messageOrNone(view, index + 1);
  const isLast = next?.turnId !== message.turnId;
  const nextTurn = isLast && next ? turnOf(context, ref, view, next) : undefined;
  // A turn that waited to be saved closes after the next one began, which must not come along.
  const end = nextTurn ? nextTurn.from - 1 : view.seq;
  if (!turn) return end;
  if (isLast && "to" in turn) return Math.min(end, turn.to);
  if (isLast && "outcome" in turn) return end;
  const before = "to" in turn ? turn.to + 1 : view.seq + 1;
  const { facts } = await context.journal.read(ref, { after: turn.from - 1, before, limit: before - turn.from });
  const asked = callsAnsweredBy(view, index);
  const calls = new Set(asked && callsOf(asked).map((call) => call.toolCallId));
  const last = facts.findLast(
    (fact) =>
      fact.id === message.id ||
      fact.id === asked?.id ||
      (fact.type === "tool.returned" && fact.turnId === turn.id && calls.has(fact.callId)),
  );
  return last?.seq ?? before - 1;
}

function turnOf(
  context: Context,
  ref: BranchRef,
  view: BranchView,
  { turnId }: Message,
): TurnRecord | OpenTurn | undefined {
  const closed =
    view.skipped === 0
      ? context.views.indexOf(ref, view).turns.get(turnId)
      : view.turns.findLast(({ id }) => id === turnId);
  return closed ?? unclosedTurns(view).find(({ id }) => id === turnId);
}

/** The message whose calls the one at the index answers. */
function callsAnsweredBy(view: BranchView, index: number): Message | undefined {
  const asked = index > 0 ? messageOrNone(view, index - 1) : undefined;
  return asked && resultsId(asked.id) === messageOrNone(view, index)?.id ? asked : undefined;
}

/** The message at a position of the ledger, those of unclosed turns included. */
function messageOrNone(view: BranchView, position: number): Message | undefined {
  const count = countLedger(view);
  return position < count ? view.messages[position - view.skipped] : unclosedMessages(view)[position - count];
}

function unclosedTurns({ staged, open }: BranchView): readonly OpenTurn[] {
  return open ? [...staged, open] : staged;
}

function allMessages(view: BranchView): readonly Message[] {
  return [...view.messages, ...unclosedMessages(view)];
}

function resultsOf({ content }: Message): ToolResultPart[] {
  return typeof content === "string" ? [] : content.filter((part) => part.type === "tool-result");
}

function beforeFirstTurn(view: BranchView): number {
  const first = view.turns[0] ?? view.staged[0] ?? view.open;
  return first ? first.from - 1 : view.seq;
}

/** Names what stands for the message now, when a hard compaction replaced it. */
export async function messageMissing(
  context: Context,
  ref: BranchRef,
  view: BranchView,
  messageId: string,
): Promise<BoughError> {
  const at = context.views.indexOf(ref, view).ledger.get(messageId);
  const hard = outermost(view.overlays.filter(isHard));
  const over =
    at !== undefined
      ? hard.find((each) => covers(each, { from: at, to: at + 1 }))
      : await findReplacing(context, ref, hard, messageId);
  const replacements = over?.replacements.map(({ id }) => id) ?? [];
  const hint = replacements.length > 0 ? ` It was compacted into ${replacements.join(", ")}.` : "";
  return new BoughError("message_not_on_branch", `Branch "${ref.branchId}" has no message "${messageId}".${hint}`, {
    data: { ...ref, messageId, replacements },
  });
}

/** The compaction in force that took the place of one whose replacement the message was. */
async function findReplacing(
  context: Context,
  ref: BranchRef,
  overlays: readonly Overlay[],
  messageId: string,
): Promise<Overlay | undefined> {
  for (const overlay of overlays) {
    // Positions only get smaller, or this might not end.
    const replaced = [overlay.seq];
    for (let seq = replaced.pop(); seq !== undefined; seq = replaced.pop()) {
      const [fact] = (await context.journal.read(ref, { after: seq - 1, limit: 1 })).facts;
      if (fact?.type !== "history.compacted") continue;
      if (fact.replacements.some(({ id }) => id === messageId)) return overlay;
      for (const over of fact.over ?? []) if (over < seq) replaced.push(over);
    }
  }
  return undefined;
}
