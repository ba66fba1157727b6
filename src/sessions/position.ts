// From what a person points at (a message, an index, a position) to a place in the log where a branch can be cut. Messages
// are counted as they would be if every unclosed turn closed now.

import { BoughError } from "../base/errors.ts";
import { callsOf, type Message, type ToolResultPart } from "../events/index.ts";
import { type BranchRef, refuse } from "../log/index.ts";
import type { BranchView, OpenTurn, TurnRecord } from "../projection/index.ts";
import { answerDangling, isNotExecuted, replaceMessages, resultsId } from "../projection/tools.ts";
import type { Context } from "./context.ts";

/** One of these; none means the latest message. */
export interface Target {
  /** Up to and including this message. */
  readonly messageId?: string;
  /** The first so many messages: index 4 keeps messages 0 to 3. */
  readonly messageIndex?: number;
  /** Up to and including this position of the log. */
  readonly seq?: number;
  /** Up to and including the position that this checkpoint of the branch names. */
  readonly checkpointId?: string;
}

/** Where to cut: the facts up to `seq` give at least the first `messages` messages. */
export interface Position {
  readonly seq: number;
  readonly messages: number;
  readonly messageId?: string;
  /** Present when facts up to `seq` go past the cut, so that state has to be taken from here instead. */
  readonly stateSeq?: number;
  /** The calls of the last batch that have their results, when some don't. */
  readonly answered?: readonly string[];
  /** The cut leaves calls without their results; one more message answers them. */
  readonly dangles: boolean;
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
    throw new BoughError("invalid_argument", "Say one point: a message, an index, a position, or a checkpoint.", {
      data: { ...ref, ...Object.fromEntries(said) },
    });
  }
  const { checkpointId } = target;
  const named = checkpointId === undefined ? target.seq : await seqOfCheckpoint(context, ref, checkpointId);
  if (named !== undefined) return positionAt(context, ref, view, named, options);
  const count = await countUpTo(context, ref, view, target);
  if (count === 0) return { seq: beforeFirstTurn(view), messages: 0, dangles: false };
  const message = messageAt(view, count - 1)!;
  // Before anything is waited for: the view goes on, and the count belongs to it as it is now.
  const compacted = view.compactions.findLast(({ retention }) => retention === "hard")?.seq ?? 0;
  const seq = await seqOf(context, ref, view, count - 1, message);
  const cut = { messages: count, messageId: message.id, dangles: callsOf(message).length > 0 };
  if (compacted <= seq) return { seq, ...cut };
  // The facts up to there may give the last batch results that were reverted away since.
  return { seq: compacted, ...cut, ...answeredIn(message), stateSeq: seq };
}

function answeredIn(message: Message): Pick<Position, "answered"> {
  const results = message.role === "tool" ? resultsOf(message) : [];
  const answered = results.filter((each) => !isNotExecuted(each)).map(({ toolCallId }) => toolCallId);
  return answered.length < results.length ? { answered } : {};
}

/** Refuses a position that the branch can't go back to, because what it had there was reverted away or compacted. */
async function checkReachable(context: Context, ref: BranchRef, view: BranchView, then: BranchView): Promise<void> {
  const { seq } = then;
  const now = allMessages(view);
  const isStart = allMessages(then).every(({ id }, i) => id === now[i]?.id);
  if (isStart && (await isOnPath(context, ref, view, seq))) return;
  const sentence = `Position ${seq} of branch "${ref.branchId}" was reverted away or compacted; fork there instead.`;
  throw new BoughError("position_not_on_branch", sentence, { data: { ...ref, seq, newest: view.seq } });
}

/** Going back from the newest fact, a revert jumps to where it went. */
async function isOnPath(context: Context, ref: BranchRef, view: BranchView, seq: number): Promise<boolean> {
  let at = view.seq;
  while (at > seq) {
    const { facts } = await context.journal.read(ref, { after: seq, before: at + 1, reverse: true });
    for (const fact of facts) if (fact.seq === at) at = fact.type === "branch.reverted" ? fact.to : at - 1;
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
  const then = await context.views.loadAt(ref, seq);
  if (goBack) await checkReachable(context, ref, view, then);
  const all = allMessages(then);
  const last = unclosedTurns(then).at(-1)?.messages.at(-1) ?? all.at(-1);
  const dangles = last !== undefined && callsOf(last).length > 0;
  const messages = dangles ? all.length - 1 : all.length;
  const position = { seq, messages, dangles, ...(last && { messageId: last.id }) };
  const given = last?.role === "tool" ? resultsOf(last) : [];
  const isPart = given.length > 0 && given.length < callsOf(all.at(-2)!).length;
  return isPart ? { ...position, answered: given.map(({ toolCallId }) => toolCallId) } : position;
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
    const known = context.views.indexOf(ref, view).messages.get(messageId);
    if (known !== undefined) return known + 1;
    const found = unclosed.findIndex(({ id }) => id === messageId);
    if (found >= 0) return view.messages.length + found + 1;
    throw await messageMissing(context, ref, view, messageId);
  }
  const total = view.messages.length + unclosed.length;
  if (messageIndex === undefined) return view.messages.length || total;
  if (!Number.isInteger(messageIndex) || messageIndex < 0 || messageIndex > total) {
    throw new BoughError("invalid_argument", `Message index ${messageIndex} is outside 0 to ${total}.`, {
      data: { messageIndex, messages: total },
    });
  }
  return messageIndex;
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
  const next = messageAt(view, index + 1);
  const isLast = next?.turnId !== message.turnId;
  const nextTurn = isLast && next ? turnOf(context, ref, view, next) : undefined;
  // A turn that waited to be saved closes after the next one began, which must not come along.
  const end = nextTurn ? nextTurn.from - 1 : view.seq;
  if (!turn) return Math.min(end, replacedAt(view, message));
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

/** Where a hard compaction put the message. */
function replacedAt(view: BranchView, { id }: Message): number {
  const compaction = view.compactions.find(({ replacements }) =>
    replacements.some((each) => each.id === id || resultsId(each.id) === id),
  );
  return compaction?.seq ?? view.seq;
}

function turnOf(
  context: Context,
  ref: BranchRef,
  view: BranchView,
  { turnId }: Message,
): TurnRecord | OpenTurn | undefined {
  return context.views.indexOf(ref, view).turns.get(turnId) ?? unclosedTurns(view).find(({ id }) => id === turnId);
}

/** The message whose calls the one at the index answers. */
function callsAnsweredBy(view: BranchView, index: number): Message | undefined {
  const asked = index > 0 ? messageAt(view, index - 1) : undefined;
  return asked && resultsId(asked.id) === messageAt(view, index)?.id ? asked : undefined;
}

function messageAt(view: BranchView, index: number): Message | undefined {
  return view.messages[index] ?? unclosedMessages(view)[index - view.messages.length];
}

function unclosedTurns({ staged, open }: BranchView): readonly OpenTurn[] {
  return open ? [...staged, open] : staged;
}

function unclosedMessages(view: BranchView): readonly Message[] {
  return unclosedTurns(view).flatMap((turn) => answerDangling(turn.messages));
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

/** Says what stands for the message now, when hard compactions replaced it. */
async function messageMissing(
  context: Context,
  ref: BranchRef,
  view: BranchView,
  messageId: string,
): Promise<BoughError> {
  let standsFor = [messageId];
  for (const compaction of view.compactions) {
    if (compaction.retention === "soft") continue;
    const before = (await context.views.loadAt(ref, compaction.seq - 1)).messages;
    const after = new Set((replaceMessages(before, compaction) ?? before).map(({ id }) => id));
    const isReplaced = before.some(({ id }) => standsFor.includes(id) && !after.has(id));
    if (isReplaced) standsFor = compaction.replacements.map(({ id }) => id);
  }
  const known = context.views.indexOf(ref, view).messages;
  const replacements = standsFor.filter((id) => known.has(id));
  const hint = replacements.length > 0 ? ` It was compacted into ${replacements.join(", ")}.` : "";
  return new BoughError("message_not_on_branch", `Branch "${ref.branchId}" has no message "${messageId}".${hint}`, {
    data: { ...ref, messageId, replacements },
  });
}
