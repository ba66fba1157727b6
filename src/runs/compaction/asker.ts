// A strategy's calls to the model of a run. They go through the run's hooks around model calls like any other call, because what
// those take out of a prompt must not reach the provider another way.

import { BoughError } from "../../base/errors.ts";
import {
  callError,
  MessageAssembler,
  type ModelRequest,
  ownRequest,
  requestToSend,
  retryDelay,
  streamModel,
} from "../../models/index.ts";
import type { StrategyModel, StrategyReply } from "../../sessions/compaction/port.ts";
import type { ActiveTurn } from "../turn/active-turn.ts";
import { windowOf } from "./options.ts";

/** What a strategy can ask the model of this turn. */
export function askerFor(
  turn: ActiveTurn,
  request: () => ModelRequest,
  { signal, isOverfull }: { signal: AbortSignal; isOverfull: boolean },
): StrategyModel {
  const { model, compaction } = turn.plan;
  const window = windowOf(compaction, model);
  return {
    model,
    isOverfull,
    request,
    ...(window !== undefined && { window }),
    ask: (each) => ask(turn, each, signal),
  };
}

async function ask(turn: ActiveTurn, request: ModelRequest, signal: AbortSignal): Promise<StrategyReply> {
  const { plan, context } = turn;
  for (let attempt = 1; ; attempt++) {
    try {
      return await hear(turn, request, signal);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      const now = context.clock.now();
      const delayMs = retryDelay({ error, attempt, policy: plan.retry, random: plan.random, now });
      if (delayMs === undefined) throw callError(error, { model: request.model, redact: plan.redact });
      await context.clock.sleep(delayMs, signal);
      if (signal.aborted) throw signal.reason;
    }
  }
}

async function hear(turn: ActiveTurn, request: ModelRequest, signal: AbortSignal): Promise<StrategyReply> {
  const { wrapModelCall, changesRequest } = turn.plan.pipeline;
  const assembler = new MessageAssembler();
  const next = (asked: ModelRequest) => streamModel(requestToSend(asked), { signal });
  const own = changesRequest.around ? ownRequest(request) : request;
  const stream = wrapModelCall ? wrapModelCall(turn.hook, own, next) : next(request);
  for await (const part of stream) {
    if (signal.aborted) throw signal.reason;
    if (part.type === "error") throw part.error;
    assembler.add(part);
  }
  const { text, calls, usage } = assembler;
  turn.compaction.addSummary(usage);
  if (!assembler.isFinished) {
    throw new BoughError("model_failed", "The model's answer was cut off.", { retryable: true });
  }
  return { text, hasCalls: calls.length > 0, usage };
}
