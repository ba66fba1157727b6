// The loop: model, tools, model … until the model has nothing left to ask for, or something ends the turn.

import { failpoint } from "../base/failpoint.ts";
import type { Message, NewMessage, ToolOutput } from "../events/index.ts";
import { callsOf, textOf } from "../events/index.ts";
import { unclosedTranscript } from "../projection/transcript.ts";
import type { ActiveTurn } from "./active-turn.ts";
import { runBatch } from "./batch.ts";
import { nextReply, type Reply } from "./iteration.ts";
import { isRepair, outputInvalid, readOutput, repairMessage } from "./output.ts";

/** How a turn came to its end. */
export interface TurnFinish {
  readonly reason: string;
  /** The final answer, not written yet: it goes into the append that closes the turn. */
  readonly message?: Reply["message"];
  readonly output?: unknown;
}

export async function loop(turn: ActiveTurn): Promise<TurnFinish> {
  if (turn.resumed) {
    const done = await takeUp(turn);
    if (done) return done;
  }
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
    return { reason: turn.stopReason ?? "stopped" };
  }
  const { message, calls, finishReason } = reply;
  const finish = calls.length === 0 ? await answered(turn, reply) : undefined;
  let outputs: ToolOutput[] = [];
  if (calls.length > 0) {
    await turn.write(messageDraft(turn, message));
    failpoint("run.reply.written");
    const { messages } = await openTurn(turn);
    outputs = await runBatch(turn, { messageId: message.id, calls, isLeft: false, messages, span });
  }
  const { afterIteration } = turn.plan.pipeline;
  const usage = turn.usage === before ? {} : turn.usage;
  await afterIteration?.(turn.hook, { message: asMessage(turn, message), outputs, finishReason, usage });
  turn.emitter.live({ type: "iteration-end", iteration, finishReason }, span);
  if (!finish && turn.plan.durable?.checkpoints === "per-iteration") await turn.checkpoint({ source: "loop" });
  return finish;
}

/** The model asks for nothing more: this is the answer, unless it has to fit a schema and doesn't. */
async function answered(turn: ActiveTurn, { message, finishReason }: Reply): Promise<TurnFinish | undefined> {
  const { output: schema } = turn.plan;
  if (!schema) return { reason: finishReason, message };
  const read = await readOutput(schema, textOf(message));
  if ("value" in read) return { reason: finishReason, message, output: read.value };
  const { messages } = await openTurn(turn);
  if (messages.some(isRepair)) {
    turn.partial = message;
    throw outputInvalid(read.problem);
  }
  await turn.write(messageDraft(turn, message), messageDraft(turn, repairMessage(read.problem)));
  return undefined;
}

/** Goes on where a turn was left: runs the calls that have no result yet. */
async function takeUp(turn: ActiveTurn): Promise<TurnFinish | undefined> {
  const { messages } = await openTurn(turn);
  turn.iterations = messages.filter(({ role }) => role === "assistant").length;
  const asked = messages.findLastIndex(({ role }) => role === "assistant");
  const message = messages[asked];
  if (!message) return undefined;
  const calls = callsOf(message);
  if (calls.length === 0) return asked === messages.length - 1 ? { reason: "resumed" } : undefined;
  const results = messages[asked + 1];
  const given = new Set(
    results?.role === "tool" && typeof results.content !== "string"
      ? results.content.map((part) => ("toolCallId" in part ? part.toolCallId : ""))
      : [],
  );
  const left = calls.filter(({ toolCallId }) => !given.has(toolCallId));
  if (left.length === 0) return undefined;
  const span = turn.emitter.span();
  await runBatch(turn, { messageId: message.id, calls: left, isLeft: true, messages, span });
  return undefined;
}

async function openTurn(turn: ActiveTurn): Promise<{ messages: readonly Message[] }> {
  const view = await turn.view();
  return view.open ?? { messages: unclosedTranscript(view) };
}

function messageDraft(turn: ActiveTurn, { id, ...message }: NewMessage) {
  const stamp = turn.stamp();
  return { ...stamp, ...(id !== undefined && { id }), type: "message.added", turnId: turn.turnId, ...message } as never;
}

function asMessage(turn: ActiveTurn, message: Reply["message"]): Message {
  return { ...message, createdAt: turn.context.clock.now(), turnId: turn.turnId };
}
