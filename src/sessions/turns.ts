// Turns: the only way messages get onto a branch. A turn is begun with its input, grows fact by fact, and closes once.
// Here are the commands; opening a turn is in turn-opening.ts, writing and closing it in turn-writer.ts.
//
//   Turns-1. Every fact of a turn is appended by the holder of the branch's run slot, under its epoch.
//   Turns-2. Beginning claims the slot and closing gives it back in the same append: a turn without tools is two appends.
//   Turns-3. A turn that was left open is closed before the next one begins, so that the log reads on legally.
//   Turns-4. After it closed, or after another took the branch over, a writer writes nothing.

import { BoughError } from "../base/errors.ts";
import { failpoint } from "../base/failpoint.ts";
import type { JsonObject } from "../base/json.ts";
import { checkOptions, optionKeys } from "../base/options.ts";
import { messagesAdded, stateChanged, turnCommitted } from "../events/drafts.ts";
import type { Fact, QueuedInput } from "../events/index.ts";
import type { BranchRef } from "../log/store.ts";
import type { BranchView } from "../projection/index.ts";
import { nextInputs } from "../projection/queue.ts";
import { resolveBranch } from "./branches.ts";
import { whileFree } from "./claims.ts";
import type { Context, Scope } from "./context.ts";
import { type InputMessage, storeMessages } from "./files.ts";
import { draftOpening, draftResumption, draftTaking, holdTurn, type TurnOptions } from "./turn-opening.ts";
import { checkNew, type TurnClose, type TurnWriter } from "./turn-writer.ts";

const turn = { runId: true, agentId: true, metadata: true, leaseMs: true, retention: true } as const;
const beginTurnKeys = optionKeys<TurnOptions>(turn);
const used = { usage: true, summaries: true, children: true } as const;
const close = { ...used, context: true, iterations: true, reason: true, state: true } as const;
const appendTurnKeys = optionKeys<TurnClose & TurnOptions>({ ...turn, ...close });

/** Begins a turn with its input; a turn that was left open is closed first. */
export async function beginTurn(
  context: Context,
  scope: Scope,
  input: string | readonly InputMessage[],
  options: TurnOptions = {},
): Promise<TurnWriter> {
  checkOptions("The options of beginTurn", options, beginTurnKeys);
  const ref = await resolveBranch(context, scope);
  const { runId = context.ids.next() } = options;
  const messages = await storeMessages({ context, ref, isChecked: true }, toMessages(input));
  const turn = { ...options, runId, turnId: context.ids.next(), input: messages, onCached: true };
  return (await holdTurn(context, ref, turn, (view) => ({ opening: draftOpening(context, view, turn) }))).held;
}

/** Resumes the open turn: after a crash, or after release(). */
export async function resumeTurn(context: Context, scope: Scope, options: TurnOptions = {}): Promise<TurnWriter> {
  checkOptions("The options of resumeTurn", options, beginTurnKeys);
  const ref = await resolveBranch(context, scope);
  const by = { ...options, runId: options.runId ?? context.ids.next() };
  const { held } = await holdTurn(context, ref, by, (view) => {
    const opening = draftResumption(context, view, by);
    if (opening) return { opening };
    throw new BoughError("nothing_to_resume", `Branch "${ref.branchId}" has no turn to resume.`, { data: { ...ref } });
  });
  return held;
}

/**
 * Begins a turn with the inputs that are next in the queue (`nextInputs`), as they were asked; undefined when none waits.
 * `turn_open` while another turn is.
 */
export async function takeInputs(
  context: Context,
  scope: Scope,
  options: TurnOptions = {},
): Promise<TurnWriter | undefined> {
  checkOptions("The options of takeInputs", options, beginTurnKeys);
  const ref = await resolveBranch(context, scope);
  const runId = options.runId ?? context.ids.next();
  try {
    const { held } = await holdTurn(context, ref, { ...options, runId }, (view) => {
      const inputs = inputsToTake(ref, view);
      const turn = { ...askedTogether(inputs), ...options, runId, turnId: context.ids.next() };
      return { opening: draftTaking(context, inputs, turn) };
    });
    failpoint("run.input.taken");
    return held;
  } catch (error) {
    if (BoughError.is(error, "nothing_to_resume")) return undefined;
    throw error;
  }
}

/** The inputs that a turn takes now; `nothing_to_resume` without any, `turn_open` while another turn is open. */
export function inputsToTake(ref: BranchRef, { open, queue }: BranchView): readonly QueuedInput[] {
  const inputs = nextInputs(queue);
  if (inputs.length === 0) {
    throw new BoughError("nothing_to_resume", `Branch "${ref.branchId}" has no queued input.`, { data: { ...ref } });
  }
  if (open) throw turnOpen(ref, open.id);
  return inputs;
}

/** How inputs that are taken together were asked: alike, but each may have metadata of its own. */
export function askedTogether(
  inputs: readonly QueuedInput[],
): Pick<QueuedInput, "agentId" | "by" | "metadata" | "request"> {
  const { agentId, by, request } = inputs[0]!;
  const metadata: JsonObject = Object.assign({}, ...inputs.map((each) => each.metadata));
  return {
    ...(agentId !== undefined && { agentId }),
    ...(by !== undefined && { by }),
    ...(Object.keys(metadata).length > 0 && { metadata }),
    ...(request && { request }),
  };
}

function turnOpen(ref: BranchRef, turnId: string): BoughError {
  const sentence = `Branch "${ref.branchId}" has an open turn; its queue is taken when that is closed.`;
  return new BoughError("turn_open", sentence, { data: { ...ref, turnId } });
}

/** Appends a complete turn at once: for imports, and when the answer is already known. */
export async function appendTurn(
  context: Context,
  scope: Scope,
  given: readonly InputMessage[],
  close: TurnClose & TurnOptions = {},
): Promise<{ turnId: string; facts: readonly Fact[] }> {
  checkOptions("The options of appendTurn", close, appendTurnKeys);
  const ref = await resolveBranch(context, scope);
  const messages = await storeMessages({ context, ref, isChecked: true }, given);
  const turnId = context.ids.next();
  const append = async (view: BranchView) => {
    const { drafts: opening } = draftOpening(context, view, { ...close, turnId, input: [] });
    const drafts = [...opening, ...messagesAdded(context, turnId, messages)];
    await checkNew(context, ref, view, drafts);
    return [...drafts, ...stateChanged(context, turnId, close.state), turnCommitted(context, turnId, close)];
  };
  const written = await whileFree(context, ref, append, { part: true });
  return { turnId, facts: written?.facts ?? [] };
}

/** Commits the complete turns that wait on the branch and returns their ids; an empty list when none waits. */
export async function saveBranch(context: Context, scope: Scope): Promise<readonly string[]> {
  const ref = await resolveBranch(context, scope);
  const commit = (view: BranchView) => view.staged.map(({ id }) => turnCommitted(context, id));
  const written = await whileFree(context, ref, commit, { part: true });
  return (written?.facts ?? []).flatMap((fact) => (fact.type === "turn.committed" ? [fact.turnId] : []));
}

function toMessages(input: string | readonly InputMessage[]): readonly InputMessage[] {
  return typeof input === "string" ? [{ role: "user", content: input }] : input;
}
