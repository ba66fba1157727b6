// Edit, regenerate and undo, in terms of a handle's own methods: both kinds of handles share the code, so they can't differ.

import { BoughError } from "../base/errors.ts";
import type { Message } from "../events/index.ts";
import type { BranchHandle, BranchRunOptions, ForkedRun, ForkRequest, Input, UndoneTurn } from "./handle.ts";

/** A message and the messages around it. */
interface Found {
  readonly message: Message;
  /** The message before it, and the one before its turn. */
  readonly previous: Message | undefined;
  readonly beforeTurn: Message | undefined;
  /** The messages of its turn. */
  readonly turn: readonly Message[];
}

/** Forks before a user message and runs another input in its place. */
export async function editMessage<Event>(
  branch: BranchHandle<Event>,
  messageId: string,
  input: Input,
  options?: BranchRunOptions,
): Promise<ForkedRun<Event>> {
  const { message, previous } = await findMessage(branch, messageId);
  if (message.role !== "user") {
    const sentence = `Message "${messageId}" is not a user's. Use regenerate to replace an answer.`;
    throw new BoughError("invalid_argument", sentence, { data: { ...branch.scope, messageId, role: message.role } });
  }
  return runOnFork(branch, previous, input, options);
}

/** Forks before a turn and runs its input again. */
export async function regenerateTurn<Event>(
  branch: BranchHandle<Event>,
  messageId: string | undefined,
  options?: BranchRunOptions,
): Promise<ForkedRun<Event>> {
  const { turn, beforeTurn } = await findMessage(branch, messageId);
  const answer = turn.findIndex(({ role }) => role === "assistant");
  const asked = answer < 0 ? turn : turn.slice(0, answer);
  const input = asked.map(({ role, content, providerOptions }) => ({
    role,
    content,
    ...(providerOptions && { providerOptions }),
  }));
  if (input.length === 0) {
    throw new BoughError("invalid_argument", "The turn has no input to run again.", { data: { ...branch.scope } });
  }
  return runOnFork(branch, beforeTurn, input as unknown as Input, options);
}

/** Reverts the last turn, and no other: `sequence_conflict` if another writer adds to the conversation meanwhile. */
export async function undoTurn(branch: BranchHandle<unknown>): Promise<UndoneTurn> {
  let conflict: { readonly error: unknown; readonly last: string } | undefined;
  for (;;) {
    // Before the messages are read, so that whatever comes after them is noticed.
    const { seq: expectedSeq } = await branch.state({ last: 1 });
    const { message, turn, beforeTurn } = await findMessage(branch, undefined);
    if (conflict && conflict.last !== message.id) throw conflict.error;
    try {
      await branch.revert({ ...(beforeTurn ? { to: beforeTurn.id } : { toMessageIndex: 0 }), expectedSeq });
      return { turnId: turn[0]!.turnId, messages: turn };
    } catch (error) {
      if (!BoughError.is(error, "sequence_conflict")) throw error;
      conflict = { error, last: message.id };
    }
  }
}

async function runOnFork<Event>(
  branch: BranchHandle<Event>,
  last: Message | undefined,
  input: Input,
  options: BranchRunOptions | undefined,
): Promise<ForkedRun<Event>> {
  const point: ForkRequest = last ? { from: last.id } : { fromMessageIndex: 0 };
  const forked = await branch.fork(point);
  return { branch: forked, run: forked.run(input, options) };
}

/** The message (the last one without an id), looked for from the end of the branch. */
async function findMessage(branch: BranchHandle<unknown>, messageId: string | undefined): Promise<Found> {
  let known: readonly Message[] = [];
  let before: string | undefined;
  do {
    const page = await branch.messages(before === undefined ? {} : { before });
    known = [...page.messages, ...known];
    before = page.before;
    const at = messageId === undefined ? known.length - 1 : known.findLastIndex(({ id }) => id === messageId);
    const message = known[at];
    const first = message ? known.findIndex(({ turnId }) => turnId === message.turnId) : -1;
    // The turn may begin on an earlier page.
    if (!message || (first === 0 && before !== undefined)) continue;
    const turn = known.filter(({ turnId }) => turnId === message.turnId);
    return { message, previous: known[at - 1], beforeTurn: known[first - 1], turn };
  } while (before !== undefined);
  const { branchId } = branch.scope;
  if (messageId === undefined) throw new BoughError("invalid_argument", `Branch "${branchId}" has no messages.`);
  throw new BoughError("message_not_on_branch", `Branch "${branchId}" has no message "${messageId}".`, {
    data: { ...branch.scope, messageId },
  });
}
