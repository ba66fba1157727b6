// One tool call, from what the model asked to what it gets to read. Whatever goes wrong with it becomes a result.

import { BoughError } from "../base/errors.ts";
import { failpoint } from "../base/failpoint.ts";
import { copyJson, isSameJson, type Json } from "../base/json.ts";
import type { Draft, Message, ToolCallPart, ToolOutput } from "../events/index.ts";
import type { ToolCallContext } from "../middleware/index.ts";
import { describeError } from "../models/index.ts";
import { problems, type RunToolOptions, runTool, type Tool, type ToolContext } from "../tools/index.ts";
import { fitting } from "../tools/output.ts";
import type { ActiveTurn } from "./active-turn.ts";
import { answerText } from "./asking.ts";
import type { Span } from "./emit.ts";
import { Parked } from "./endings.ts";
import { formOfCall, takeOutput } from "./output.ts";
import { startTask } from "./tasks.ts";

export interface CallScope {
  readonly turn: ActiveTurn;
  /** The message that asked. */
  readonly messageId: string;
  /** The message was written by an earlier run: the call may have begun then. */
  readonly isLeft: boolean;
  readonly messages: readonly Message[];
  readonly span: Span;
  /** Runs what executes, a bounded number at the same time. */
  readonly slots: <T>(work: () => Promise<T>) => Promise<T>;
}

/** What a call is given: as it was shown, and what the tool makes of that. */
interface CallInput {
  readonly shown: Json;
  readonly input: unknown;
}

/** A call on its way through the hooks. */
interface Pending {
  readonly scope: CallScope;
  readonly call: ToolCallPart;
  readonly tool: Tool;
  /** How often it may have begun to run before. */
  readonly starts: number;
}

export async function outputOf(scope: CallScope, call: ToolCallPart): Promise<ToolOutput> {
  const { turn } = scope;
  const form = formOfCall(turn.plan.output, call);
  // It is the answer and no deed, so there is nothing for hooks to allow.
  if (form) return takeOutput(form, call);
  const tool = turn.plan.tools.get(call.toolName);
  if (!tool) return problems.unknownTool(call.toolName, [...turn.plan.tools.keys()]);
  const parsed = await tool.parse(call.input);
  if ("problem" in parsed) return problems.invalidInput(call.toolName, parsed.problem);
  const pending = { scope, call, tool, starts: startsOf(scope, call) };
  const settled = await reconciled(pending, parsed.value);
  if (settled && settled !== "not-executed") return settled;
  return throughHooks(settled === "not-executed" ? { ...pending, starts: 0 } : pending, parsed.value);
}

/** Of a call without a question before it, the message that asked is the record that it was about to begin. */
function startsOf({ turn, isLeft }: CallScope, { toolCallId }: ToolCallPart): number {
  const before = isLeft && !turn.asking.isGated(toolCallId) ? 1 : 0;
  return before + (turn.starts.get(toolCallId) ?? 0);
}

function isUnsure({ tool, starts }: Pending): boolean {
  // What a client runs has its own interaction, which stays the same one.
  return tool.effect === "once" && tool.execute !== undefined && starts > 0;
}

/** What a tool that must not run twice finds out about a call that may have run. */
async function reconciled(pending: Pending, input: unknown): Promise<ToolOutput | "not-executed" | undefined> {
  const { tool, scope } = pending;
  if (!isUnsure(pending) || !tool.reconcile) return undefined;
  try {
    return await untilParked(async (park) =>
      tool.reconcile?.(input, toolContext(pending, { park, asks: { prefix: "reconcile-", count: 0 } })),
    );
  } catch (error) {
    if (error instanceof Parked) throw error;
    report(scope, error);
    return undefined;
  }
}

async function throughHooks(pending: Pending, value: unknown): Promise<ToolOutput> {
  const { scope, call, tool } = pending;
  const { beforeToolCall, wrapToolCall, afterToolCall } = scope.turn.plan.pipeline;
  let blocked: ToolOutput | undefined;
  const context: ToolCallContext = {
    ...scope.turn.hook,
    iteration: scope.turn.iterations,
    call,
    tool,
    starts: pending.starts,
    isUnsure: isUnsure(pending),
    // Its own: what a hook changes in place is seen, and the message stays as it is.
    input: copyJson(call.input),
    get isBlocked() {
      return blocked !== undefined;
    },
    block(output) {
      blocked = output;
    },
  };
  await beforeToolCall?.(context);
  if (blocked) return blocked;
  // From here on it is fixed: what was shown is what runs.
  const shown = context.input;
  let input = value;
  if (!isSameJson(shown, call.input)) {
    const parsed = await tool.parse(shown);
    if ("problem" in parsed) return problems.invalidInput(tool.name, parsed.problem);
    input = parsed.value;
  }
  const { parking } = scope.turn;
  const work = () => {
    // Only what runs here takes a slot; a client takes its time.
    if (!tool.execute) return askClient(scope, call, shown);
    parking.queue(call.toolCallId);
    return scope.slots(() => {
      parking.unqueue(call.toolCallId);
      return execute(pending, context, { shown, input });
    });
  };
  const output = await (wrapToolCall ? wrapToolCall(context, work) : work());
  return afterToolCall ? await afterToolCall(context, output) : output;
}

async function execute(pending: Pending, hook: ToolCallContext, { shown, input }: CallInput): Promise<ToolOutput> {
  const { scope, call, tool, starts } = pending;
  const { turn, messageId, span } = scope;
  const { toolCallId: callId, toolName } = call;
  await turn.ensureHeld();
  if (tool.effect === "once" && (starts > 0 || turn.asking.isGated(callId))) {
    await turn.write({ ...turn.stamp(), type: "tool.started", turnId: turn.turnId, callIds: [callId] });
    failpoint("run.tool.started");
  }
  turn.emitter.live({ type: "tool-start", messageId, callId, toolName }, span);
  const asks = { prefix: "", count: 0 };
  const options: RunToolOptions = {
    clock: turn.context.clock,
    random: turn.plan.random,
    onError: async (error) => {
      report(scope, error);
      await turn.plan.pipeline.onError?.(hook, error);
    },
    inputAgain: async () => {
      const parsed = await tool.parse(shown);
      return "value" in parsed ? parsed.value : input;
    },
    onRetry: ({ error, ...again }) => {
      asks.count = 0;
      turn.emitter.live({ type: "tool-retry", callId, toolName, ...again, error: describeError(error) }, span);
    },
  };
  const output = await untilParked((park) => runTool(tool, input, toolContext(pending, { park, asks }), options));
  failpoint("run.tool.executed");
  return output;
}

/** A tool that the connected client runs: its answer is the result. */
async function askClient(scope: CallScope, call: ToolCallPart, input: Json): Promise<ToolOutput> {
  const { turn, messageId, span } = scope;
  const { toolCallId: callId, toolName } = call;
  turn.emitter.live({ type: "tool-start", messageId, callId, toolName }, span);
  const answer = await turn.asking.ask({ kind: "client-tool", callId, request: { toolName, input } });
  if (!answer.answered) return problems.noClient(toolName, answer.reason);
  const { output, error } = answer.answer;
  if (typeof error === "string") return { type: "error-text", value: error };
  if (error !== undefined && error !== null) return { type: "error-json", value: error };
  // It may be an output as it is; what is none is taken as a plain result.
  return fitting(output ?? null);
}

/** A question that another run gets the answer of ends the call here; the tool, which waits for it, goes no further. */
function untilParked<T>(work: (park: (parked: Parked) => void) => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    work(reject).then(resolve, reject);
  });
}

/** Numbers the questions of one attempt; those of a reconciliation are told from those of the call itself. */
interface Asks {
  readonly prefix: string;
  count: number;
}

/** What a tool is given. */
function toolContext(
  { scope, call }: Pending,
  { park, asks }: { park: (parked: Parked) => void; asks: Asks },
): ToolContext {
  const { turn, messages, span } = scope;
  const { toolCallId: callId, toolName } = call;
  const { sessionId, branchId, turnId, runId, signal, state, emit, checkpoint } = turn.hook;
  return {
    ...{ sessionId, branchId, turnId, runId, signal, state, emit, checkpoint },
    callId,
    toolName,
    attempt: 1,
    messages,
    progress: (output) => turn.emitter.live({ type: "tool-progress", callId, toolName, output }, span),
    async ask(question, { choices } = {}) {
      const request = { toolName, question, ...(choices && { choices: [...choices] }) };
      // A call that runs again asks the same questions in the same order, and gets the answers it got.
      const key = `${asks.prefix}${++asks.count}`;
      const answer = await turn.asking.ask({ kind: "clarification", callId, key, request }).catch((reason) => {
        if (!(reason instanceof Parked)) throw reason;
        park(reason);
        return new Promise<never>(() => {});
      });
      if (answer.answered) return answerText(answer.answer);
      throw new BoughError("no_answer", `Nobody answered: ${question}`, { data: { reason: answer.reason } });
    },
    background: (name, work) => startTask(turn, { name, callId, work }),
  };
}

function report({ turn, span }: CallScope, error: unknown): void {
  turn.emitter.live({ type: "error-report", source: "tool", error: describeError(error) }, span);
}

/** The fact that a call has its result, after those that nothing is asked about it any more. */
export function returned(turn: ActiveTurn, { toolCallId, toolName }: ToolCallPart, output: ToolOutput): Draft[] {
  const fact = { ...turn.stamp(), type: "tool.returned", turnId: turn.turnId, callId: toolCallId, toolName, output };
  return [...turn.asking.outlived(toolCallId), fact as Draft];
}
