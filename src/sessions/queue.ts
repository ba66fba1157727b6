// The queue: inputs that were sent to a branch and wait for a turn. They are facts, written without a claim by any process, so
// they survive restarts and are taken on any node. projection/queue.ts says which are taken together, runs/ takes them.
//   SessionsQueue-1. An input is queued once: the store takes its id once on a branch, whatever fact has it.
//   SessionsQueue-2. It is taken, withdrawn or edited on the newest view: of several that want it, the first append wins.
//   SessionsQueue-3. The row's header has the number of inputs that wait, so that `listOpen` finds the branch.

import { BoughError } from "../base/errors.ts";
import { failpoint } from "../base/failpoint.ts";
import { checkId } from "../base/ids.ts";
import type { JsonObject } from "../base/json.ts";
import { checkOptions, optionKeys } from "../base/options.ts";
import { inputEdited, inputQueued, inputWithdrawn } from "../events/drafts.ts";
import type { Draft, InputSource, QueuedInput, QueuedMessage, TurnRequest } from "../events/index.ts";
import type { BranchRef } from "../log/store.ts";
import { resolveBranch } from "./branches.ts";
import type { Context, Scope } from "./context.ts";
import { type InputMessage, storeMessages } from "./files.ts";
import { onNewest } from "./on-newest.ts";

/** How an input is queued. */
export interface QueueOptions {
  /** The input's id; new by default. The same id is queued once on a branch, however often it is sent. */
  readonly inputId?: string;
  /**
   * `"idle"` (default): begins a turn of its own. `"next"`: the same, before those that wait. `"steer"`: joins the open turn
   * between two model calls.
   */
  readonly when?: "idle" | "next" | "steer";
  /** What sent it: the end of a background task. */
  readonly source?: InputSource;
  /** The agent that is to take it: the one with this id. */
  readonly agentId?: string;
  /** The person or program that sends it. */
  readonly by?: string;
  readonly metadata?: JsonObject;
  /** How its turn is to run. */
  readonly request?: TurnRequest;
  /** How many inputs may wait on the branch, this one included (default: any number); `queue_full` beyond. */
  readonly limit?: number;
}

const queueKeys = optionKeys<QueueOptions>({
  inputId: true,
  when: true,
  source: true,
  agentId: true,
  by: true,
  metadata: true,
  request: true,
  limit: true,
});

/** What became of an input that was to be queued. */
export interface Queuing {
  readonly inputId: string;
  /** False if the branch had an input, or a message, of this id before. */
  readonly isNew: boolean;
}

/** Queues an input: one append. */
export async function queueInput(
  context: Context,
  scope: Scope,
  input: string | readonly InputMessage[],
  options: QueueOptions = {},
): Promise<Queuing> {
  checkOptions("The options of queueInput", options, queueKeys);
  const { inputId = context.ids.next(), limit = Number.POSITIVE_INFINITY, when = "idle", ...sent } = options;
  if (options.inputId !== undefined) checkId(inputId, "input");
  const ref = await resolveBranch(context, scope);
  const messages = await queuedMessages(context, ref, input);
  const draft = inputQueued(context, inputId, { ...sent, when, messages });
  let isNew: boolean;
  try {
    const written = await onNewest(context, ref, ({ queue }) => {
      if (queue.some(({ id }) => id === inputId)) return [];
      if (queue.length >= limit) throw queueFull(ref, limit);
      return [draft];
    });
    isNew = written.length > 0;
  } catch (error) {
    // SessionsQueue-1.
    if (BoughError.is(error, "event_conflict")) return { inputId, isNew: false };
    throw error;
  }
  failpoint("run.input.queued");
  return { inputId, isNew };
}

/** The inputs that wait on the branch, oldest first. */
export async function listQueue(context: Context, scope: Scope): Promise<readonly QueuedInput[]> {
  const ref = await resolveBranch(context, scope);
  return (await context.views.loadForRun(ref)).view.queue;
}

/** What is different about a queued input. */
export interface InputEdit {
  /** What it says now. */
  readonly input?: string | readonly InputMessage[];
  readonly when?: "idle" | "steer";
}

const editKeys = optionKeys<InputEdit>({ input: true, when: true });

/** Who changes a queued input, and who may. */
export interface InputChange {
  readonly by?: string;
  readonly reason?: string;
  /** Throws for an input that the caller may not change. */
  readonly check?: (input: QueuedInput) => void;
}

const changeKeys = optionKeys<InputChange>({ by: true, reason: true, check: true });

/** Changes a queued input; `input_closed` once it was taken or withdrawn, `input_not_found` if there never was one. */
export async function editInput(
  context: Context,
  scope: Scope,
  inputId: string,
  edit: InputEdit,
  change: InputChange = {},
): Promise<QueuedInput> {
  checkOptions("An edit", edit, editKeys);
  checkOptions("The options of editInput", change, changeKeys);
  const { input, when } = edit;
  const ref = await resolveBranch(context, scope);
  if (input === undefined && when === undefined) {
    throw new BoughError("invalid_argument", "An edit needs input or when.", { data: { inputId } });
  }
  const messages = input === undefined ? undefined : await queuedMessages(context, ref, input);
  const draft = inputEdited(context, { inputId, messages, when, by: change.by });
  const before = await changeInput(context, ref, inputId, change, draft);
  return { ...before, ...(messages && { messages }), ...(when && { when }), editedAt: draft.at };
}

/** Withdraws a queued input: no turn takes it. Errors as `editInput`. */
export async function withdrawInput(
  context: Context,
  scope: Scope,
  inputId: string,
  change: InputChange = {},
): Promise<QueuedInput> {
  checkOptions("The options of withdrawInput", change, changeKeys);
  const { by, reason } = change;
  const draft = inputWithdrawn(context, { inputId, by, reason });
  return changeInput(context, scope, inputId, change, draft);
}

async function changeInput(
  context: Context,
  scope: Scope,
  inputId: string,
  { check }: InputChange,
  draft: Draft,
): Promise<QueuedInput> {
  checkId(inputId, "input");
  const ref = await resolveBranch(context, scope);
  let found: QueuedInput | undefined;
  await onNewest(context, ref, ({ queue }) => {
    found = queue.find(({ id }) => id === inputId);
    if (!found) return [];
    check?.(found);
    return [draft];
  });
  if (found) return found;
  throw await whyNotQueued(context, ref, inputId);
}

/** How many facts are searched for what became of an input. */
const lookBack = 1000;

/** The refusal of a change to an input that is not queued: `input_closed`, or `input_not_found`. */
async function whyNotQueued({ journal }: Context, ref: BranchRef, inputId: string): Promise<BoughError> {
  const { facts } = await journal.read(ref, { reverse: true, limit: lookBack });
  for (const fact of facts) {
    if (fact.type === "input.withdrawn" && fact.inputId === inputId) return inputClosed(ref, inputId, "withdrawn");
    if (fact.type === "message.added" && fact.inputId === inputId) {
      return inputClosed(ref, inputId, "taken", fact.turnId);
    }
    if (fact.type === "turn.started" && fact.inputs?.includes(inputId)) {
      return inputClosed(ref, inputId, "taken", fact.id);
    }
  }
  const sentence = `Branch "${ref.branchId}" has no queued input "${inputId}".`;
  return new BoughError("input_not_found", sentence, { data: { ...ref, inputId } });
}

function inputClosed(ref: BranchRef, inputId: string, why: "taken" | "withdrawn", turnId?: string): BoughError {
  const sentence = `Input "${inputId}" was ${why} before.`;
  return new BoughError("input_closed", sentence, { data: { ...ref, inputId, why, ...(turnId && { turnId }) } });
}

function queueFull(ref: BranchRef, limit: number): BoughError {
  const sentence = `At most ${limit} inputs can wait on branch "${ref.branchId}". Try again later.`;
  return new BoughError("queue_full", sentence, { data: { ...ref, limit }, retryable: true });
}

/** The messages as the fact has them: files stored, without ids. A text stands for one message of one text part. */
async function queuedMessages(
  context: Context,
  ref: BranchRef,
  input: string | readonly InputMessage[],
): Promise<QueuedMessage[]> {
  const given: readonly InputMessage[] = typeof input === "string" ? [{ role: "user", content: input }] : input;
  const messages = await storeMessages({ context, ref, isChecked: true }, given);
  return messages.map(({ role, content, providerOptions }) => {
    if (role === "tool") throw new BoughError("invalid_argument", "The results of tools can't be queued.");
    const isText = typeof content === "string" && role !== "system";
    const parts = isText ? [{ type: "text" as const, text: content }] : content;
    return { role, content: parts, ...(providerOptions && { providerOptions }) };
  });
}
