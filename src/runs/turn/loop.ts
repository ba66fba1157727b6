// The loop: model, tools, model … until the model has nothing left to ask for, or something ends the turn.

import { failpoint } from "../../base/failpoint.ts";
import type { Draft, Fact, Message, ToolCallPart, ToolOutput } from "../../events/index.ts";
import { callsOf, textOf } from "../../events/index.ts";
import { encodeDrafts, numberFrom } from "../../log/journal.ts";
import type { Usage } from "../../models/index.ts";
import { messageOf } from "../../projection/records.ts";
import { unclosedTranscript } from "../../projection/transcript.ts";
import { runBatch } from "../calls/batch.ts";
import type { Span } from "../emit.ts";
import {
  notCalled,
  outputInvalid,
  outputMissing,
  outputOfCalls,
  readOutput,
  repairMessage,
  wasRefused,
} from "../structured-output/output.ts";
import { type ActiveTurn, previewMessage } from "./active-turn.ts";
import { nextReply } from "./iteration.ts";
import { isRefusal, seenOf } from "./keepable.ts";
import { takeSteering } from "./steering.ts";

/** How a turn came to its end. */
export interface TurnFinish {
  readonly reason: string;
  /** The final answer, not written yet: it goes into the append that closes the turn. */
  readonly message?: Draft<"message.added">;
  /** What the model call behind the message used. */
  readonly usage?: Usage;
  readonly output?: unknown;
  /** What begins the turn that follows at once, in the append that closes this one. */
  readonly next?: readonly Draft[];
}

/** The turn is not to be closed: another agent goes on with it. */
export const handedOn: TurnFinish = { reason: "handed-on" };

/** Works until the turn is to be closed. `again`: after something steered it that was about to be closed. */
export async function loop(turn: ActiveTurn, { again = false }: { again?: boolean } = {}): Promise<TurnFinish> {
  const finish = (turn.resumed && !again ? await takeUp(turn) : undefined) ?? (await iterateOn(turn));
  if (finish === handedOn) return finish;
  // A caller that asks for structured output gets it, or an error with the reason.
  if (turn.plan.output && !("output" in finish)) throw outputMissing(finish.reason);
  return finish;
}

async function iterateOn(turn: ActiveTurn): Promise<TurnFinish> {
  for (;;) {
    if (turn.stopReason !== undefined) return { reason: turn.stopReason };
    const tokens = turn.tokenLimit();
    if (tokens !== undefined) {
      turn.emitter.live({ type: "limit-reach", limit: "tokens", value: tokens });
      return { reason: "token-limit" };
    }
    // Handoffs-3: the turn goes on, with another plan.
    if (turn.handing) return handedOn;
    await takeSteering(turn);
    const finish = await iterate(turn);
    if (finish) return finish;
  }
}

/** One model call and the batch it asked for; how the turn ended, if it did. */
async function iterate(turn: ActiveTurn): Promise<TurnFinish | undefined> {
  const iteration = ++turn.iterations;
  const span = turn.emitter.span();
  turn.emitter.live({ type: "iteration-start", iteration }, span);
  const reply = await nextReply(turn, span);
  if (!reply) {
    turn.iterations--;
    turn.emitter.live({ type: "iteration-end", iteration }, span);
    return { reason: turn.stopReason ?? "stopped" };
  }
  const { message, calls, finishReason, usage = {}, prompt } = reply;
  // Made once: hooks, the result and the log agree on it.
  const draft = turn.draft(message, { prompt, ...(calls.length > 0 && { usage }) });
  let finish = calls.length === 0 ? await takeAnswer(turn, { draft, finishReason, usage }) : undefined;
  let outputs: ToolOutput[] = [];
  if (calls.length > 0) {
    outputs = await (isOnlyRead(turn, calls) ? callMeanwhile(turn, draft, span) : callAfter(turn, draft, calls, span));
    finish = await outputGiven(turn, message.id);
  }
  const { afterIteration } = turn.plan.pipeline;
  // A person has seen the answer: it is kept, also if the turn fails now.
  if (finish?.message) turn.partial = draft;
  if (afterIteration) {
    await afterIteration(turn.hook, { message: previewMessage(draft), outputs, finishReason, usage });
  }
  turn.emitter.live({ type: "iteration-end", iteration, finishReason }, span);
  if (!finish) await nameIteration(turn);
  return finish;
}

/** Runs the calls of a message once it is written: it is the record that they are about to begin. */
async function callAfter(
  turn: ActiveTurn,
  message: Draft<"message.added">,
  calls: readonly ToolCallPart[],
  span: Span,
): Promise<ToolOutput[]> {
  await turn.write(message).catch((error) => keepSeen(turn, message, error));
  failpoint("run.reply.written");
  const { messages } = await turnSoFar(turn);
  return runBatch(turn, { messageId: message.id, calls, isLeft: false, messages: messages.slice(), span });
}

/** Whether the calls may start without a record: running them again changes nothing. */
function isOnlyRead({ plan }: ActiveTurn, calls: readonly ToolCallPart[]): boolean {
  if (plan.hasToolHooks) return false;
  return calls.every(({ toolName }) => {
    const tool = plan.tools.get(toolName);
    return tool?.effect === "read" && tool.execute !== undefined && tool.permission === false;
  });
}

/** Runs the calls of a message while it is being written. What can't be written is refused before anything runs. */
async function callMeanwhile(turn: ActiveTurn, message: Draft<"message.added">, span: Span): Promise<ToolOutput[]> {
  const { messages } = await turnSoFar(turn);
  // A copy, as the log will give it back: what a tool does to it is not done to what is written.
  const { facts } = encodedAlone(turn, message);
  const asking = messageOf(facts[0] as Fact<"message.added">);
  const written = turn.log.writeAhead(message, turn.abort).then(
    () => failpoint("run.reply.written"),
    () => {}, // The run is aborted, for this reason.
  );
  const batch = { messageId: asking.id, calls: callsOf(asking), isLeft: false, messages: [...messages, asking], span };
  return runBatch(turn, batch).finally(() => written);
}

function encodedAlone(turn: ActiveTurn, message: Draft<"message.added">) {
  try {
    return numberFrom(0, encodeDrafts([message]));
  } catch (error) {
    return keepSeen(turn, message, error);
  }
}

/** A reply that the log refuses ends the turn; what a person may have seen of it is kept with the turn's end. */
function keepSeen(turn: ActiveTurn, { usage: _usage, ...reply }: Draft<"message.added">, error: unknown): never {
  if (isRefusal(error)) turn.partial = seenOf(reply);
  throw error;
}

/** A turn that goes on has a place to come back to after each iteration, if that is asked for. */
async function nameIteration(turn: ActiveTurn): Promise<void> {
  if (turn.plan.durable?.checkpoints === "per-iteration") await turn.checkpoint({ source: "loop" });
}

/** The model asks for nothing more: this is the answer, unless it has to fit a schema and doesn't. */
async function takeAnswer(
  turn: ActiveTurn,
  { draft: message, finishReason, usage }: { draft: Draft<"message.added">; finishReason: string; usage: Usage },
): Promise<TurnFinish | undefined> {
  const { output: plan } = turn.plan;
  if (!plan) return { reason: finishReason, message, usage };
  const read =
    plan.mode === "native" ? await readOutput(plan.form, textOf(message)) : { problem: notCalled(plan.forms) };
  if ("value" in read) return { reason: finishReason, message, usage, output: read.value };
  const { messages } = await turnSoFar(turn);
  if (wasRefused(plan, messages)) {
    turn.partial = message;
    throw outputInvalid(read.problem);
  }
  const reply = withUsage(message, usage);
  const repair = turn.draft(repairMessage(plan, read.problem));
  await turn.write(reply, repair).catch((error) => keepSeen(turn, reply, error));
  return undefined;
}

/** A reply that does not close its turn, with what it used. */
export function withUsage(message: Draft<"message.added">, usage: Usage = {}): Draft<"message.added"> {
  return Object.keys(usage).length > 0 ? { ...message, usage: { ...usage } } : message;
}

/** One of the calls may have been the answer: the turn ends with it, as it stands in the log, so also after a crash. */
async function outputGiven(turn: ActiveTurn, messageId: string): Promise<TurnFinish | undefined> {
  const { output: plan } = turn.plan;
  if (plan?.mode !== "tool") return undefined;
  const { messages } = await turnSoFar(turn);
  const at = messages.findIndex(({ id }) => id === messageId);
  const read = await outputOfCalls(plan, messages[at]!, messages[at + 1]);
  if (!read) return undefined;
  if ("value" in read) return { reason: "output", output: read.value };
  if (wasRefused(plan, messages.slice(0, at))) throw outputInvalid(read.problem);
  return undefined;
}

/** Goes on where a turn was left: runs the calls that have no result yet. How the turn ended, if they were its end. */
async function takeUp(turn: ActiveTurn): Promise<TurnFinish | undefined> {
  const { messages } = await turnSoFar(turn);
  const replies = messages.filter(({ id, role }) => role === "assistant" && !turn.inputs.has(id));
  turn.iterations = replies.length;
  const message = replies.at(-1);
  if (!message) return undefined;
  const results = messages[messages.indexOf(message) + 1];
  const given = new Set(
    results?.role === "tool" && typeof results.content !== "string"
      ? results.content.map((part) => ("toolCallId" in part ? part.toolCallId : ""))
      : [],
  );
  const calls = callsOf(message).filter(({ toolCallId }) => !given.has(toolCallId));
  // The plan is that of the agent it was handed over to already.
  if (calls.length === 0) turn.handing = undefined;
  if (calls.length > 0) {
    const span = turn.emitter.span();
    await runBatch(turn, { messageId: message.id, calls, isLeft: true, messages: messages.slice(), span });
  }
  // What came behind it is yet to be answered.
  const isSteered = messages.slice(messages.indexOf(message)).some(({ id }) => turn.inputs.has(id));
  const finish = isSteered ? undefined : await outputGiven(turn, message.id);
  if (!finish && calls.length > 0) await nameIteration(turn);
  return finish;
}

async function turnSoFar(turn: ActiveTurn): Promise<{ messages: readonly Message[] }> {
  const view = await turn.view();
  return view.open ?? { messages: unclosedTranscript(view) };
}
