// A batch: the calls of one message. They run side by side; each result is written as it arrives, and the model gets them
// in the order in which it asked.

import { untilAborted } from "../../base/abort.ts";
import { failpoint } from "../../base/failpoint.ts";
import { inSlots } from "../../base/slots.ts";
import { stateChanged } from "../../events/drafts.ts";
import { callsOf, type Draft, type Message, type ToolCallPart, type ToolOutput } from "../../events/index.ts";
import type { ToolBatchContext } from "../../middleware/index.ts";
import { storeOutput } from "../../sessions/files.ts";
import { problems } from "../../tools/index.ts";
import { fitting } from "../../tools/output.ts";
import type { Span } from "../emit.ts";
import { childParked, Parked } from "../endings.ts";
import { shortenOutput } from "../files/attach.ts";
import type { ActiveTurn } from "../turn/active-turn.ts";
import { type CallScope, draftResult, runCall } from "./call.ts";

export interface Batch {
  readonly messageId: string;
  readonly calls: readonly ToolCallPart[];
  readonly isLeft: boolean;
  readonly messages: readonly Message[];
  readonly span: Span;
}

/** Runs the calls and writes their results; returns them in the order asked. Throws `Parked` when one waits. */
export async function runBatch(turn: ActiveTurn, batch: Batch): Promise<ToolOutput[]> {
  const { beforeTools, afterTools } = turn.plan.pipeline;
  if (!beforeTools && !afterTools) return runCalls(turn, batch);
  let skipped: ToolOutput | undefined;
  const context: ToolBatchContext = {
    ...turn.hook,
    iteration: turn.iterations,
    calls: batch.calls,
    skip(output) {
      skipped = fitting(output);
    },
  };
  await beforeTools?.(context);
  const outputs = skipped ? await skipCalls(turn, batch, skipped) : await runCalls(turn, batch);
  await afterTools?.(context, outputs);
  return outputs;
}

async function skipCalls(turn: ActiveTurn, { calls }: Batch, given: ToolOutput): Promise<ToolOutput[]> {
  const output = await withoutBytes(turn, given);
  await turn.write(...calls.flatMap((call) => draftResult(turn, call, output)));
  return calls.map(() => output);
}

/** Runs the calls up to the limit of one message. The others get a denial, so that every call has a result. */
async function runCalls(turn: ActiveTurn, batch: Batch): Promise<ToolOutput[]> {
  const { calls: limit } = turn.plan.limits;
  const past = callsPast(batch, limit);
  if (past.length === 0) return runAllowed(turn, batch);
  turn.emitter.live({ type: "limit-reach", limit: "calls", value: limit }, batch.span);
  const allowed = batch.calls.slice(0, batch.calls.length - past.length);
  const outputs = allowed.length > 0 ? await runAllowed(turn, { ...batch, calls: allowed }) : [];
  return [...outputs, ...(await skipCalls(turn, { ...batch, calls: past }, problems.tooManyCalls(limit)))];
}

/** The calls past the limit, counted from the first of the message: also when earlier ones have their results already. */
function callsPast({ calls, messageId, messages, isLeft }: Batch, limit: number): readonly ToolCallPart[] {
  if (!isLeft && calls.length <= limit) return [];
  const message = messages.findLast(({ id }) => id === messageId);
  const asked = message ? callsOf(message) : calls;
  if (asked.length <= limit) return [];
  const past = new Set(asked.slice(limit).map(({ toolCallId }) => toolCallId));
  return calls.filter(({ toolCallId }) => past.has(toolCallId));
}

async function runAllowed(turn: ActiveTurn, { calls, ...batch }: Batch): Promise<ToolOutput[]> {
  const slots = inSlots(turn.plan.limits.parallelTools);
  const writesEach = turn.plan.durable?.pendingWrites ?? true;
  const changed = stateChanges(turn);
  const one = async (call: ToolCallPart) => {
    const scope: CallScope = { turn, ...batch, span: turn.emitter.span(batch.span), slots };
    const made = await runCall(scope, call).finally(() => turn.parking.done(call.toolCallId));
    const about = { tool: turn.plan.tools.get(call.toolName), callId: call.toolCallId };
    const output = await shortenOutput(turn, await withoutBytes(turn, made), about);
    if (turn.signal.aborted) throw turn.signal.reason;
    if (writesEach) {
      const drafts = draftResult(turn, call, output);
      await turn.write(...drafts, ...changed());
      if (drafts.length > 1 && drafts.some(({ type }) => type === "task.started")) failpoint("run.task.started");
      if (turn.handing?.callId === call.toolCallId) failpoint("run.handed");
      failpoint("run.result.written");
    }
    return output;
  };
  turn.parking.begin(calls.map(({ toolCallId }) => toolCallId));
  // All of them, also when one fails: what the others did must be written before the turn ends or is parked.
  const ends = await untilAborted(turn.signal, Promise.allSettled(calls.map(one))).catch(async (reason) => {
    // What is being written at this moment is shown before the run ends.
    await turn.log.settle();
    throw reason;
  });
  const failed = ends.filter((end) => end.status === "rejected");
  const worst = failed.toSorted((a, b) => gravity(a.reason) - gravity(b.reason))[0];
  if (!writesEach) await writeTogether(turn, calls, ends, changed);
  if (worst) throw worst.reason;
  return ends.map((end) => (end as PromiseFulfilledResult<ToolOutput>).value);
}

/** Files that a hook or a client put into an output are stored, too. */
async function withoutBytes(turn: ActiveTurn, output: ToolOutput): Promise<ToolOutput> {
  if (output.type !== "content") return output;
  return fitting(await storeOutput(turn.fileDoor("tool"), output));
}

/** Which of several reasons ends the batch: a failure before anything that waits, a question before a child that waits. */
function gravity(reason: unknown): number {
  if (!(reason instanceof Parked)) return 0;
  // Who answers a question leaves the rest to the run that asked (execute.ts), so that has to look again.
  return reason.reason === childParked ? 2 : 1;
}

async function writeTogether(
  turn: ActiveTurn,
  calls: readonly ToolCallPart[],
  ends: readonly PromiseSettledResult<ToolOutput>[],
  changed: () => Draft[],
): Promise<void> {
  const drafts = calls.flatMap((call, i) => {
    const end = ends[i]!;
    return end.status === "fulfilled" ? draftResult(turn, call, end.value) : [];
  });
  if (drafts.length > 0) await turn.write(...drafts, ...changed());
  failpoint("run.result.written");
}

/** Branch state goes with the results of the calls that changed it: after a crash they don't run again. */
function stateChanges(turn: ActiveTurn): () => Draft[] {
  let written = JSON.stringify(turn.state.branchPatch());
  return () => {
    const set = turn.state.branchPatch();
    const text = JSON.stringify(set);
    if (text === written) return [];
    written = text;
    return stateChanged(turn.context, turn.turnId, set);
  };
}
