// Turns: the only way messages get onto a branch. A turn is begun with its input, grows fact by fact, and closes once.
// Here are the commands; opening a turn is in turn-opening.ts, writing and closing it in turn-writer.ts.
//
//   Turns-1. Every fact of a turn is appended by the holder of the branch's run slot, under its epoch.
//   Turns-2. Beginning claims the slot and closing gives it back in the same append: a turn without tools is two appends.
//   Turns-3. A turn that was left open is closed before the next one begins, so that the log reads on legally.
//   Turns-4. After it closed, or after another took the branch over, a writer writes nothing.

import { BoughError } from "../base/errors.ts";
import { checkOptions, optionKeys } from "../base/options.ts";
import { messagesAdded, stateChanged, turnCommitted } from "../events/drafts.ts";
import type { Fact, NewMessage } from "../events/index.ts";
import type { BranchView } from "../projection/index.ts";
import { resolveBranch } from "./branches.ts";
import { whileFree } from "./claims.ts";
import type { Context, Scope } from "./context.ts";
import { draftOpening, draftResumption, holdTurn, type TurnOptions } from "./turn-opening.ts";
import { checkNew, type TurnClose, type TurnWriter } from "./turn-writer.ts";

const turn = { runId: true, agentId: true, metadata: true, leaseMs: true, retention: true } as const;
const beginTurnKeys = optionKeys<TurnOptions>(turn);
const close = { usage: true, summaries: true, context: true, iterations: true, reason: true, state: true } as const;
const appendTurnKeys = optionKeys<TurnClose & TurnOptions>({ ...turn, ...close });

/** Begins a turn with its input; a turn that was left open is closed first. */
export async function beginTurn(
  context: Context,
  scope: Scope,
  input: string | readonly NewMessage[],
  options: TurnOptions = {},
): Promise<TurnWriter> {
  checkOptions("The options of beginTurn", options, beginTurnKeys);
  const ref = await resolveBranch(context, scope);
  const { runId = context.ids.next() } = options;
  const turn = { ...options, runId, turnId: context.ids.next(), input: toMessages(input), onCached: true };
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

/** Appends a complete turn at once: for imports, and when the answer is already known. */
export async function appendTurn(
  context: Context,
  scope: Scope,
  messages: readonly NewMessage[],
  close: TurnClose & TurnOptions = {},
): Promise<{ turnId: string; facts: readonly Fact[] }> {
  checkOptions("The options of appendTurn", close, appendTurnKeys);
  const ref = await resolveBranch(context, scope);
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

function toMessages(input: string | readonly NewMessage[]): readonly NewMessage[] {
  return typeof input === "string" ? [{ role: "user", content: input }] : input;
}
