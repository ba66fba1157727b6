// The loop: model, tools, model … until the model has nothing left to ask for, or something ends the turn.

import { failpoint } from "../base/failpoint.ts";
import { copyPlain } from "../base/json.ts";
import type { Draft, Fact, Message, NewMessage, ToolCallPart, ToolOutput } from "../events/index.ts";
import { callsOf, textOf } from "../events/index.ts";
import { encodeDrafts, numberFrom } from "../log/journal.ts";
import type { Usage } from "../models/index.ts";
import { messageOf } from "../projection/fold.ts";
import { unclosedTranscript } from "../projection/transcript.ts";
import type { ActiveTurn } from "./active-turn.ts";
import { runBatch } from "./batch.ts";
import type { Span } from "./emit.ts";
import { nextReply, type Reply } from "./iteration.ts";
import { isRefusal, seenOf } from "./keepable.ts";
import {
  isRepair,
  notCalled,
  outputInvalid,
  outputMissing,
  outputOfCalls,
  readOutput,
  repairMessage,
  wasRefused,
} from "./output.ts";

/** How a turn came to its end. */
export interface TurnFinish {
  readonly reason: string;
  /** The final answer, not written yet: it goes into the append that closes the turn. */
  readonly message?: Reply["message"];
  readonly output?: unknown;
}

export async function loop(turn: ActiveTurn): Promise<TurnFinish> {
  const finish = (turn.resumed ? await takeUp(turn) : undefined) ?? (await iterateOn(turn));
  // Whoever asks for an object gets one, or an error that says why not.
  if (turn.plan.output && !("output" in finish)) throw outputMissing(finish.reason);
  return finish;
}

async function iterateOn(turn: ActiveTurn): Promise<TurnFinish> {
  for (;;) {
    if (turn.stopReason !== undefined) return { reason: turn.stopReason };
    const finish = await iterate(turn);
    if (finish) return finish;
  }
}

/** One model call and the batch it asked for; how the turn ended, if it did. */
async function iterate(turn: ActiveTurn): Promise<TurnFinish | undefined> {
  const iteration = ++turn.iterations;
  const span = turn.emitter.span();
  turn.emitter.live({ type: "iteration-start", iteration }, span);
  const before = turn.usage;
  const reply = await nextReply(turn, span);
  if (!reply) {
    turn.iterations--;
    turn.emitter.live({ type: "iteration-end", iteration }, span);
    return { reason: turn.stopReason ?? "stopped" };
  }
  const { message, calls, finishReason } = reply;
  let finish = calls.length === 0 ? await answered(turn, reply, before) : undefined;
  let outputs: ToolOutput[] = [];
  if (calls.length > 0) {
    const draft = messageDraft(turn, message, usageSince(before, turn.usage));
    outputs = await (isOnlyRead(turn, calls) ? callMeanwhile(turn, draft, span) : callAfter(turn, draft, calls, span));
    finish = await outputGiven(turn, message.id);
  }
  const { afterIteration } = turn.plan.pipeline;
  // A person has seen the answer: it is kept, also if the turn fails now.
  if (finish?.message) turn.partial = message;
  if (afterIteration) {
    const usage = usageSince(before, turn.usage);
    await afterIteration(turn.hook, { message: asMessage(turn, message), outputs, finishReason, usage });
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
  const { messages } = await openTurn(turn);
  return runBatch(turn, { messageId: message.id, calls, isLeft: false, messages: messages.slice(), span });
}

/** Whether nobody needs a record that the calls are about to begin: running them again changes nothing. */
function isOnlyRead({ plan }: ActiveTurn, calls: readonly ToolCallPart[]): boolean {
  if (plan.hasToolHooks) return false;
  return calls.every(({ toolName }) => {
    const tool = plan.tools.get(toolName);
    return tool?.effect === "read" && tool.execute !== undefined && tool.permission === false;
  });
}

/** Runs the calls of a message while it is being written. What can't be written is refused before anything runs. */
async function callMeanwhile(turn: ActiveTurn, message: Draft<"message.added">, span: Span): Promise<ToolOutput[]> {
  const { messages } = await openTurn(turn);
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
function keepSeen(turn: ActiveTurn, { id, role, content }: Draft<"message.added">, error: unknown): never {
  if (isRefusal(error)) turn.partial = seenOf({ id, role, content });
  throw error;
}

/** A turn that goes on has a place to come back to after each iteration, if that is asked for. */
async function nameIteration(turn: ActiveTurn): Promise<void> {
  if (turn.plan.durable?.checkpoints === "per-iteration") await turn.checkpoint({ source: "loop" });
}

function usageSince(before: Usage, after: Usage): Usage {
  const counts = Object.entries(after) as [keyof Usage, number][];
  return Object.fromEntries(counts.map(([name, count]) => [name, count - (before[name] ?? 0)]));
}

/** The model asks for nothing more: this is the answer, unless it has to fit a schema and doesn't. */
async function answered(
  turn: ActiveTurn,
  { message, finishReason }: Reply,
  before: Usage,
): Promise<TurnFinish | undefined> {
  const { output: plan } = turn.plan;
  if (!plan) return { reason: finishReason, message };
  const read =
    plan.mode === "native" ? await readOutput(plan.form, textOf(message)) : { problem: notCalled(plan.forms) };
  if ("value" in read) return { reason: finishReason, message, output: read.value };
  const { messages } = await openTurn(turn);
  if (wasRefused(plan, messages)) {
    turn.partial = message;
    throw outputInvalid(read.problem);
  }
  const reply = messageDraft(turn, message, usageSince(before, turn.usage));
  const repair = messageDraft(turn, repairMessage(plan, read.problem));
  await turn.write(reply, repair).catch((error) => keepSeen(turn, reply, error));
  return undefined;
}

/** One of the calls may have been the answer: the turn ends with it, as it stands in the log, so also after a crash. */
async function outputGiven(turn: ActiveTurn, messageId: string): Promise<TurnFinish | undefined> {
  const { output: plan } = turn.plan;
  if (plan?.mode !== "tool") return undefined;
  const { messages } = await openTurn(turn);
  const at = messages.findIndex(({ id }) => id === messageId);
  const read = await outputOfCalls(plan, messages[at]!, messages[at + 1]);
  if (!read) return undefined;
  if ("value" in read) return { reason: "output", output: read.value };
  if (wasRefused(plan, messages.slice(0, at))) throw outputInvalid(read.problem);
  return undefined;
}

/** Goes on where a turn was left: runs the calls that have no result yet. How the turn ended, if they were its end. */
async function takeUp(turn: ActiveTurn): Promise<TurnFinish | undefined> {
  const { messages } = await openTurn(turn);
  const replies = repliesIn(messages);
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
  if (calls.length > 0) {
    const span = turn.emitter.span();
    await runBatch(turn, { messageId: message.id, calls, isLeft: true, messages: messages.slice(), span });
  }
  const finish = await outputGiven(turn, message.id);
  if (!finish && calls.length > 0) await nameIteration(turn);
  return finish;
}

/**
 * What models said in an open turn. Other messages of the assistant came with the input: a reply that asks for nothing is
 * written with the turn's close, or together with the request to say it again.
 */
function repliesIn(messages: readonly Message[]): Message[] {
  const input = messages.findLastIndex((message) => message.role === "user" && !isRepair(message));
  return messages.filter((message, i) => {
    if (i < input || message.role !== "assistant") return false;
    const next = messages[i + 1];
    return callsOf(message).length > 0 || (next !== undefined && isRepair(next));
  });
}

async function openTurn(turn: ActiveTurn): Promise<{ messages: readonly Message[] }> {
  const view = await turn.view();
  return view.open ?? { messages: unclosedTranscript(view) };
}

/** With what it used, which a run that takes the turn up adds to its own. */
function messageDraft(turn: ActiveTurn, { id, ...message }: NewMessage, usage: Usage = {}): Draft<"message.added"> {
  const stamp = { ...turn.stamp(), ...(id !== undefined && { id }) };
  const used = Object.keys(usage).length > 0 && { usage };
  return { ...stamp, type: "message.added", turnId: turn.turnId, ...message, ...used } as never;
}

/** A copy: it may not be written yet, and what a hook does to it is not done to what will be. */
function asMessage(turn: ActiveTurn, message: Reply["message"]): Message {
  return { ...copyPlain(message), createdAt: turn.context.clock.now(), turnId: turn.turnId };
}
