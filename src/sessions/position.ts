// From what a person points at (a message, an index, a position) to a place in the log where a branch can be cut.

import { BoughError } from "../base/errors.ts";
import { callsOf, type Message } from "../events/index.ts";
import { type BranchRef, refuse } from "../log/index.ts";
import { type BranchView, type OpenTurn, resultsId, type TurnRecord } from "../projection/index.ts";
import type { Context } from "./context.ts";

/** One of these; none means the latest message. */
export interface Target {
  /** Up to and including this message. */
  readonly messageId?: string;
  /** The first so many messages: index 4 keeps messages 0 to 3. */
  readonly messageIndex?: number;
  /** Up to and including this position of the log. */
  readonly seq?: number;
}

/** Where to cut: the facts up to `seq` give at least the first `messages` messages. */
export interface Position {
  readonly seq: number;
  readonly messages: number;
  readonly messageId?: string;
  /** Present when facts up to `seq` go past the cut, so that state has to be taken from here instead. */
  readonly stateSeq?: number;
}

export async function resolvePosition(
  context: Context,
  ref: BranchRef,
  view: BranchView,
  target: Target,
): Promise<Position> {
  if (target.seq !== undefined) return positionAt(context, ref, view, target.seq);
  const count = await countUpTo(context, ref, view, target);
  if (count === 0) return { seq: beforeFirstTurn(view), messages: 0 };
  const message = messageAt(view, count - 1);
  const seq = await seqOf(context, ref, view, count - 1, message);
  const compacted = view.compactions.findLast(({ retention }) => retention === "hard")?.seq ?? 0;
  const { id: messageId } = message;
  if (compacted <= seq) return { seq, messages: count, messageId };
  return { seq: compacted, messages: count, messageId, stateSeq: seq };
}

async function positionAt(context: Context, ref: BranchRef, view: BranchView, seq: number): Promise<Position> {
  if (!Number.isInteger(seq) || seq < 0 || seq > view.seq) throw refuse.notOnBranch(ref, seq, view.seq);
  const then = await context.views.loadAt(ref, seq);
  const all = allMessages(then);
  const messageId = all.at(-1)?.id;
  return { seq, messages: all.length, ...(messageId && { messageId }) };
}

async function countUpTo(context: Context, ref: BranchRef, view: BranchView, target: Target): Promise<number> {
  const { messageId, messageIndex } = target;
  if (messageId !== undefined) {
    const known = context.views.indexOf(ref, view).messages.get(messageId);
    if (known !== undefined) return known + 1;
    const unclosed = unclosedMessages(view).findIndex(({ id }) => id === messageId);
    if (unclosed >= 0) return view.messages.length + unclosed + 1;
    throw await messageMissing(context, ref, view, messageId);
  }
  const total = view.messages.length + unclosedMessages(view).length;
  if (messageIndex === undefined) return view.messages.length || total;
  if (!Number.isInteger(messageIndex) || messageIndex < 0 || messageIndex > total) {
    throw new BoughError("invalid_argument", `Message index ${messageIndex} is outside 0 to ${total}.`, {
      data: { messageIndex, messages: total },
    });
  }
  return messageIndex;
}

/** The last fact that belongs to the message; at the end of a closed turn, the last fact of that turn. */
async function seqOf(
  context: Context,
  ref: BranchRef,
  view: BranchView,
  index: number,
  message: Message,
): Promise<number> {
  const turn = turnOf(context, ref, view, message);
  if (!turn) return view.seq;
  const isClosed = "to" in turn;
  if (isClosed && messageAt(view, index + 1)?.turnId !== turn.id) return turn.to;
  const before = isClosed ? turn.to + 1 : view.seq + 1;
  const { facts } = await context.journal.read(ref, { after: turn.from - 1, before, limit: before - turn.from });
  const calls = new Set(callsAnsweredBy(view, index).map((call) => call.toolCallId));
  const last = facts.findLast(
    (fact) => fact.id === message.id || (fact.type === "tool.returned" && calls.has(fact.callId)),
  );
  return last?.seq ?? before - 1;
}

function turnOf(
  context: Context,
  ref: BranchRef,
  view: BranchView,
  { turnId }: Message,
): TurnRecord | OpenTurn | undefined {
  const unclosed = view.open ? [...view.staged, view.open] : view.staged;
  return context.views.indexOf(ref, view).turns.get(turnId) ?? unclosed.find(({ id }) => id === turnId);
}

function callsAnsweredBy(view: BranchView, index: number) {
  const asked = index > 0 ? messageAt(view, index - 1) : undefined;
  return asked && resultsId(asked.id) === messageAt(view, index)?.id ? callsOf(asked) : [];
}

function messageAt(view: BranchView, index: number): Message {
  return (view.messages[index] ?? unclosedMessages(view)[index - view.messages.length])!;
}

function unclosedMessages({ staged, open }: BranchView): readonly Message[] {
  if (staged.length === 0) return open?.messages ?? [];
  return [...staged.flatMap((turn) => turn.messages), ...(open?.messages ?? [])];
}

function allMessages(view: BranchView): readonly Message[] {
  return [...view.messages, ...unclosedMessages(view)];
}

function beforeFirstTurn(view: BranchView): number {
  const first = view.turns[0] ?? view.staged[0] ?? view.open;
  return first ? first.from - 1 : view.seq;
}

/** Says what replaced the message, when a hard compaction did. */
async function messageMissing(
  context: Context,
  ref: BranchRef,
  view: BranchView,
  messageId: string,
): Promise<BoughError> {
  const replacements: string[] = [];
  for (const compaction of view.compactions) {
    if (compaction.retention === "soft") continue;
    const before = await context.views.loadAt(ref, compaction.seq - 1);
    if (!before.messages.some(({ id }) => id === messageId)) continue;
    replacements.push(...compaction.replacements.map(({ id }) => id));
  }
  const hint = replacements.length > 0 ? ` It was compacted into ${replacements.join(", ")}.` : "";
  return new BoughError("message_not_on_branch", `Branch "${ref.branchId}" has no message "${messageId}".${hint}`, {
    data: { ...ref, messageId, replacements },
  });
}
