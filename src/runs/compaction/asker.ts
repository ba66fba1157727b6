// A strategy's calls to a model: read to the end, and tried again as other calls are.

import { BoughError } from "../../base/errors.ts";
import {
  callError,
  MessageAssembler,
  type ModelRequest,
  type ModelStream,
  ownRequest,
  requestToSend,
  retryDelay,
  streamModel,
  type Usage,
} from "../../models/index.ts";
import type { StrategyModel, StrategyReply } from "../../sessions/compaction/port.ts";
import type { RunPlan } from "../config.ts";
import type { ActiveTurn } from "../turn/active-turn.ts";
import { type CompactionPlan, windowOf } from "./options.ts";

/** How calls are made. */
interface Calling {
  readonly plan: Pick<RunPlan, "clock" | "retry" | "random" | "redact" | "findModel">;
  readonly signal: AbortSignal;
  /** Sends a request; default straight to the model, with its files as `resolve` makes them. */
  readonly send?: (request: ModelRequest) => ModelStream;
  readonly resolve?: (request: ModelRequest) => Promise<ModelRequest>;
  readonly onUsage?: (usage: Usage) => void;
}

interface Asking extends Calling {
  readonly compaction: CompactionPlan;
  /** What the next call of the conversation would send. */
  readonly request: () => ModelRequest;
  readonly isOverfull?: boolean;
}

/** What a strategy can ask. */
export function askerOf(asking: Asking): StrategyModel {
  const { compaction, request, isOverfull = false } = asking;
  const { model } = request();
  const window = windowOf(compaction, model);
  const { findModel: find } = asking.plan;
  return {
    model,
    isOverfull,
    find,
    request,
    ...(window !== undefined && { window }),
    ask: (each) => ask(asking, each),
  };
}

/**
 * What a strategy can ask the model of a turn. Its calls go through the hooks around model calls: what those take out of a
 * prompt must not reach the provider another way.
 */
export function turnAsker(turn: ActiveTurn, asking: Pick<Asking, "request" | "signal" | "isOverfull">): StrategyModel {
  const { plan } = turn;
  const { wrapModelCall, changesRequest } = plan.pipeline;
  const resolve = (asked: ModelRequest) => turn.files.resolve(asked);
  const next = (asked: ModelRequest) => streamModel(requestToSend(asked), { signal: asking.signal, resolve });
  const send = (request: ModelRequest) =>
    wrapModelCall
      ? wrapModelCall(turn.hook, changesRequest.around ? ownRequest(request) : request, next)
      : next(request);
  return askerOf({
    ...asking,
    plan,
    compaction: plan.compaction,
    send,
    onUsage: (usage) => turn.compaction.addSummary(usage),
  });
}

async function ask(calling: Calling, request: ModelRequest): Promise<StrategyReply> {
  const { plan, signal } = calling;
  for (let attempt = 1; ; attempt++) {
    try {
      return await hear(calling, request);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      const now = plan.clock.now();
      const delayMs = retryDelay({ error, attempt, policy: plan.retry, random: plan.random, now });
      if (delayMs === undefined) throw callError(error, { model: request.model, redact: plan.redact });
      await plan.clock.sleep(delayMs, signal);
      if (signal.aborted) throw signal.reason;
    }
  }
}

async function hear({ signal, send, resolve, onUsage }: Calling, request: ModelRequest): Promise<StrategyReply> {
  const assembler = new MessageAssembler();
  const options = { signal, ...(resolve && { resolve }) };
  for await (const part of send ? send(request) : streamModel(request, options)) {
    if (signal.aborted) throw signal.reason;
    if (part.type === "error") throw part.error;
    assembler.add(part);
  }
  const { text, calls, usage } = assembler;
  onUsage?.(usage);
  if (!assembler.isFinished) {
    throw new BoughError("model_failed", "The model's answer was cut off.", { retryable: true });
  }
  return { text, hasCalls: calls.length > 0, usage };
}
