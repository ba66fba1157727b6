// One tool call, from what the model asked to what it gets to read. Whatever goes wrong with it becomes a result.

import { BoughError } from "../../base/errors.ts";
import { failpoint } from "../../base/failpoint.ts";
import { copyJson, isSameJson, type Json, type JsonObject } from "../../base/json.ts";
import { toolReturned, toolStarted } from "../../events/drafts.ts";
import type { Draft, Message, ToolCallPart, ToolOutput } from "../../events/index.ts";
import type { PermissionGrant, ToolCallContext } from "../../middleware/index.ts";
import { storeOutput } from "../../sessions/files.ts";
import {
  type CallAttempt,
  problems,
  type RunToolOptions,
  runTool,
  type Spawn,
  type Tool,
  type ToolContext,
} from "../../tools/index.ts";
import { fitting } from "../../tools/output.ts";
import { spawnChild } from "../children/spawn.ts";
import type { Span } from "../emit.ts";
import { Parked } from "../endings.ts";
import { attachFile, contentReader } from "../files/attach.ts";
import { handOver } from "../handoffs.ts";
import { redactOutput, tellError } from "../redact-errors.ts";
import { formOfCall, takeOutput } from "../structured-output/output.ts";
import { taskControl } from "../tasks/control.ts";
import type { ActiveTurn } from "../turn/active-turn.ts";
import { answerText } from "../turn/questions.ts";
import { type CallOwner, inCall } from "./call-owner.ts";
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
  /** Why it runs without a question, if it needed one. */
  readonly granted: PermissionGrant | undefined;
}

/** A call on its way through the hooks. */
interface Pending {
  readonly scope: CallScope;
  readonly call: ToolCallPart;
  readonly tool: Tool;
  /** How often it may have begun to run before. */
  readonly starts: number;
}

export async function runCall(scope: CallScope, call: ToolCallPart): Promise<ToolOutput> {
  const { turn } = scope;
  const form = formOfCall(turn.plan.output, call);
  // It is the answer and no deed, so there is nothing for hooks to allow.
  if (form) return takeOutput(form, call);
  const tool = turn.plan.tools.get(call.toolName);
  // What a client answered is the result, also where its tool is not known, or not as a client's.
  const answered = turn.asking.clientAnswer(call.toolCallId);
  if (answered && (!tool || tool.execute || "problem" in (await tool.parse(call.input)))) return clientOutput(answered);
  if (!tool) return problems.unknownTool(call.toolName, [...turn.plan.tools.keys()]);
  // A schema may pass on what it is given, and a tool may write on that.
  const parsed = await tool.parse(copyJson(call.input));
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
    return await untilParked((park) =>
      inCall(ownerOf(pending), async () =>
        tool.reconcile?.(input, toolContext(pending, { park, asks: { prefix: "reconcile-", count: 0 } })),
      ),
    );
  } catch (error) {
    if (error instanceof Parked) throw error;
    reportToolError(scope, error);
    return undefined;
  }
}

async function throughHooks(pending: Pending, value: unknown): Promise<ToolOutput> {
  const { scope, call, tool } = pending;
  const { beforeToolCall, wrapToolCall, afterToolCall } = scope.turn.plan.pipeline;
  let blocked: ToolOutput | undefined;
  let granted: PermissionGrant | undefined;
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
    grant(grant) {
      granted = grant;
    },
  };
  await beforeToolCall?.(context);
  if (blocked) return fitting(blocked);
  // From here on it is fixed: what was shown is what runs.
  const shown = context.input;
  let input = value;
  if (!isSameJson(shown, call.input)) {
    const parsed = await tool.parse(shown);
    if ("problem" in parsed) return problems.invalidInput(tool.name, parsed.problem);
    input = parsed.value;
  }
  const { parking } = scope.turn;
  let made: ToolOutput | undefined;
  const here = () => {
    parking.queue(call.toolCallId);
    return scope.slots(() => {
      parking.unqueue(call.toolCallId);
      return executeTool(pending, context, { shown, input, granted });
    });
  };
  const work = async () => {
    // Only what runs here takes a slot; a client takes its time.
    made = await (tool.execute ? here() : askClient(pending, { shown, granted }));
    return made;
  };
  const output = await (wrapToolCall ? wrapToolCall(context, work) : work());
  const given = afterToolCall ? await afterToolCall(context, output) : output;
  // What a hook gives in its place may be anything.
  return given === made ? given : fitting(given);
}

async function executeTool(pending: Pending, hook: ToolCallContext, given: CallInput): Promise<ToolOutput> {
  const { scope, call, tool } = pending;
  const { shown, input } = given;
  const { turn, span } = scope;
  const { toolCallId: callId, toolName } = call;
  await turn.ensureHeld();
  await recordStart(pending, given);
  tellStart(scope, call, shown);
  const asks = { prefix: "", count: 0 };
  const options: RunToolOptions = {
    clock: turn.context.clock,
    random: turn.plan.random,
    onError: async (error) => {
      reportToolError(scope, error);
      await turn.plan.pipeline.onError?.(hook, error);
    },
    storeFiles: (output) => storeOutput(turn.fileDoor("tool"), output),
    inputAgain: async () => {
      const parsed = await tool.parse(shown);
      return "value" in parsed ? parsed.value : input;
    },
    onRetry: ({ error, ...again }) => {
      asks.count = 0;
      turn.emitter.live({ type: "tool-retry", callId, toolName, ...again, error: tellError(turn.plan, error) }, span);
    },
  };
  const output = await untilParked((park) => {
    const spawnFor = spawner(scope, call, park);
    return inCall(ownerOf(pending), () =>
      runTool(tool, input, toolContext(pending, { park, asks }), { ...options, spawnFor }),
    );
  });
  failpoint("run.tool.executed");
  return output;
}

/** What is logged before a call begins, in one append: why no one was asked, and that it is about to run. */
async function recordStart(
  { scope, call, tool, starts }: Pending,
  { granted }: Pick<CallInput, "granted">,
): Promise<void> {
  const { turn } = scope;
  const { toolCallId: callId, toolName } = call;
  const isTold = tool.execute && tool.effect === "once" && (starts > 0 || turn.asking.isGated(callId));
  if (!isTold && !granted) return;
  const { context, turnId, grants } = turn;
  const drafts = granted ? grants.drafts(context, { turnId, callId, toolName }, granted) : [];
  if (isTold) drafts.push(toolStarted(context, turnId, [callId]));
  if (drafts.length > 0) await turn.write(...drafts);
  if (isTold) failpoint("run.tool.started");
}

/** An error that the tool lets float ends the run: what the tool left half done is nothing to go on with. */
function ownerOf({ scope: { turn }, call: { toolName, toolCallId: callId } }: Pending): () => CallOwner {
  return () => ({
    toolName,
    callId,
    runId: turn.held.runId,
    ...turn.held.ref,
    fail(error) {
      if (turn.isOver || turn.signal.aborted) return false;
      const sentence = `The tool "${toolName}" threw outside its call: ${tellError(turn.plan, error).message}`;
      turn.abort(new BoughError("run_failed", sentence, { data: { tool: toolName, callId }, cause: error }));
      return true;
    },
  });
}

/** A tool that the connected client runs: its answer is the result. */
async function askClient(pending: Pending, { shown: input, granted }: Omit<CallInput, "input">): Promise<ToolOutput> {
  const { scope, call } = pending;
  const { turn } = scope;
  const { toolCallId: callId, toolName } = call;
  await recordStart(pending, { granted });
  tellStart(scope, call, input);
  const answer = await turn.asking.ask({ kind: "client-tool", callId, request: { toolName, input } });
  return answer.answered ? clientOutput(answer.answer) : problems.noClient(toolName, answer.reason);
}

function clientOutput({ output, error }: JsonObject): ToolOutput {
  if (typeof error === "string") return { type: "error-text", value: error };
  if (error !== undefined && error !== null) return { type: "error-json", value: error };
  // It may be an output as it is; what is none is taken as a plain result.
  return fitting(output ?? null);
}

/** Ends a call that waits for something another run will see the end of. */
type Park = (parked: Parked) => void;

function untilParked<T>(work: (park: Park) => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    work(reject).then(resolve, reject);
  });
}

/**
 * What a tool waits for in the name of its call: an answer, a child. When that parks, the call ends here, and the tool, which
 * would take a rejection for a failure, goes no further.
 */
function orPark<T>(waiting: Promise<T>, park: Park): Promise<T> {
  return waiting.catch((reason) => {
    if (!(reason instanceof Parked)) throw reason;
    park(reason);
    return new Promise<never>(() => {});
  });
}

/** Numbers the questions of one attempt; those of a reconciliation are distinct from those of the call itself. */
interface Asks {
  readonly prefix: string;
  count: number;
}

/** What a tool is given. */
function toolContext({ scope, call }: Pending, { park, asks }: { park: Park; asks: Asks }): ToolContext {
  const { turn, messages, span } = scope;
  const { toolCallId: callId, toolName } = call;
  const { sessionId, branchId, turnId, runId, signal, state, checkpoint, sessionMetadata } = turn.hook;
  return {
    ...turn.asked,
    ...{ sessionId, branchId, turnId, runId, signal, state, checkpoint, sessionMetadata },
    emit: turn.emitFor(callId),
    callId,
    toolName,
    attempt: 1,
    messages,
    progress: (output) => turn.emitter.live({ type: "tool-progress", callId, toolName, output }, span),
    async ask(question, { choices } = {}) {
      const request = { toolName, question, ...(choices && { choices: [...choices] }) };
      // A call that runs again asks the same questions in the same order, and gets the answers it got.
      const key = `${asks.prefix}${++asks.count}`;
      const answer = await orPark(turn.asking.ask({ kind: "clarification", callId, key, request }), park);
      if (answer.answered) return answerText(answer.answer);
      throw new BoughError("no_answer", `The question was not answered: ${question}`, {
        data: { reason: answer.reason },
      });
    },
    attach: (file) => attachFile(turn, file, { callId, kind: "artifact" }),
    content: contentReader(turn),
    background: (name, work) => startTask(turn, { name, callId, work }),
    tasks: taskControl(turn, callId),
    spawn: spawner(scope, call, park)({ attempt: 1, signal }),
  };
}

/** With a copy of the input: what a subscriber does to it is not seen by the tool. */
function tellStart(
  { turn, messageId, span }: CallScope,
  { toolCallId: callId, toolName }: ToolCallPart,
  input: Json,
): void {
  if (!turn.emitter.isHeard) return;
  turn.emitter.live({ type: "tool-start", messageId, callId, toolName, input: structuredClone(input) }, span);
}

/** `spawn` for an attempt of a call. */
function spawner({ turn, messageId, isLeft }: CallScope, { toolCallId, toolName }: ToolCallPart, park: Park) {
  return (attempt: CallAttempt): Spawn => {
    const spawning = { turn, callId: toolCallId, toolName, messageId, isLeft, ...attempt, count: { next: 0 } };
    const spawn = (...child: Parameters<Spawn>) => orPark(spawnChild(spawning, ...child), park);
    return spawn as Spawn;
  };
}

function reportToolError({ turn, span }: CallScope, error: unknown): void {
  turn.emitter.live({ type: "error-report", source: "tool", error: tellError(turn.plan, error) }, span);
}

/** The fact that a call has its result, after those that nothing is asked about it any more. */
export function draftResult(turn: ActiveTurn, call: ToolCallPart, given: ToolOutput): Draft[] {
  const { toolCallId: callId, toolName } = call;
  const { drafts: handed, output } = handOver(turn, { callId, toolName }, redactOutput(turn.plan, given));
  const { usage, ...children } = turn.children.resultOf(callId);
  const result = { callId, toolName, output, ...children, ...(usage && { usage: { ...usage } }) };
  const tasks = turn.tasks.drafts(callId);
  return [...turn.asking.outlived(callId), ...tasks, ...handed, toolReturned(turn.context, turn.turnId, result)];
}
