// Edit, regenerate, undo and redo, in terms of a handle's own methods: both kinds of handles share the code, so they can't differ.

import { BoughError } from "../base/errors.ts";
import type { Message } from "../events/index.ts";
import type {
  BranchHandle,
  BranchRunOptions,
  ForkedRun,
  ForkRequest,
  Input,
  RedoRequest,
  UndoneTurn,
} from "./handle.ts";

/** A message and the messages around it. */
interface Found {
  readonly message: Message;
  /** The message before it, and the one before its turn. */
  readonly previous: Message | undefined;
  readonly beforeTurn: Message | undefined;
  /** The messages of its turn. */
  readonly turn: readonly Message[];
}

/** Where to fork, and what to run there; without input, the turn that the fork cuts is answered. */
export interface Revision {
  readonly point: ForkRequest;
  readonly input: Input | undefined;
}

/** Forks before a user message and runs another input in its place. */
export async function editMessage<Event>(
  branch: BranchHandle<Event>,
  messageId: string,
  input: Input,
  options?: BranchRunOptions,
): Promise<ForkedRun<Event>> {
  return runOnFork(branch, await planEdit(branch, messageId, input), options);
}

export async function planEdit(branch: BranchHandle<unknown>, messageId: string, input: Input): Promise<Revision> {
  const { message, previous } = await findMessage(branch, messageId);
  if (message.role !== "user") {
    const sentence = `Message "${messageId}" is not a user's. Use regenerate to replace an answer.`;
    throw new BoughError("invalid_argument", sentence, { data: { ...branch.scope, messageId, role: message.role } });
  }
  return { point: pointAfter(previous), input };
}

/** Forks behind the input of a turn and has it answered again. */
export async function regenerateTurn<Event>(
  branch: BranchHandle<Event>,
  messageId: string | undefined,
  options?: BranchRunOptions,
): Promise<ForkedRun<Event>> {
  return runOnFork(branch, await planRegeneration(branch, messageId), options);
}

/** The fork shares the input, so that the answers are versions of one message. */
export async function planRegeneration(branch: BranchHandle<unknown>, messageId?: string): Promise<Revision> {
  const { turn, beforeTurn } = await findMessage(branch, messageId);
  const answer = turn.findIndex(({ role }) => role === "assistant");
  const asked = answer < 0 ? turn : turn.slice(0, answer);
  // A turn that is itself such an answer has its input in the turn before.
  const last = asked.at(-1) ?? beforeTurn;
  if (last?.role !== "user") {
    throw new BoughError("invalid_argument", "The turn has no input to run again.", { data: { ...branch.scope } });
  }
  if (answer >= 0) return { point: pointAfter(last), input: undefined };
  // A fork at its end would not cut it, and there would be nothing to go on with.
  const input = asked.map(({ role, content, providerOptions }) => ({
    role,
    content,
    ...(providerOptions && { providerOptions }),
  }));
  return { point: pointAfter(beforeTurn), input: input as unknown as Input };
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
      return { turnId: turn[0]!.turnId, messages: turn, seq: expectedSeq };
    } catch (error) {
      if (!BoughError.is(error, "sequence_conflict")) throw error;
      conflict = { error, last: message.id };
    }
  }
}

/** Forks at the position before the newest revert. The branch itself stays as it is: a log does not go back on its way back. */
export async function redoOnFork<Event>(
  branch: BranchHandle<Event>,
  request: RedoRequest = {},
): Promise<BranchHandle<Event>> {
  const { reverts = [] } = (await branch.state({ last: 1 })).branch;
  const last = reverts.at(-1);
  if (!last) {
    const sentence = `Nothing was undone on branch "${branch.scope.branchId}".`;
    throw new BoughError("invalid_argument", sentence, { data: { ...branch.scope } });
  }
  return branch.fork({ ...request, fromSeq: last.seq - 1 });
}

async function runOnFork<Event>(
  branch: BranchHandle<Event>,
  { point, input }: Revision,
  options: BranchRunOptions | undefined,
): Promise<ForkedRun<Event>> {
  const forked = await branch.fork(point);
  return { branch: forked, run: forked.run(input, options) };
}

function pointAfter(last: Message | undefined): ForkRequest {
  return last ? { from: last.id } : { fromMessageIndex: 0 };
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
