// Telemetry: what a run does, as OpenTelemetry spans by the GenAI conventions: `invoke_agent` for the turn and below it
// `chat` for each model call and `execute_tool` for each tool call. It owns the traces of the runs that are under way.
//   Telemetry-1. A run's trace begins with the first hook that is called: a run that resumes a turn gets no beforeTurn.
//   Telemetry-2. It ends with the turn, or when the run's signal aborts, because a run that is parked or lost gets no afterTurn.

import { AbortReason } from "../../base/abort.ts";
import { type Clock, systemClock } from "../../base/clock.ts";
import type { ToolOutput } from "../../events/index.ts";
import type { ModelRequest } from "../../models/index.ts";
import { readsRequests } from "../pipeline.ts";
import type { HookContext, Middleware, ToolCallContext, TurnSummary } from "../port.ts";
import { noteError, noteFailure, RunTrace } from "./run-trace.ts";
import { numbers, providerName, tracedChat } from "./traced-chat.ts";
import { bareOutput, turnMessages } from "./traced-content.ts";
import { type Attributes, loadTraceApi, type Span, type TraceApi, type Tracer } from "./tracer.ts";

/** Options of `telemetry`. */
export interface TelemetryOptions {
  /** The tracer (default: the registered SDK's, if `@opentelemetry/api` is installed; without it nothing is traced). */
  readonly tracer?: Tracer;
  /** Records prompts, answers, tool inputs and results on the spans (default false: they may be private). */
  readonly recordContent?: boolean;
  /** Measures the time to the first chunk. */
  readonly clock?: Clock;
}

/** Traces every turn, model call and tool call with OpenTelemetry. */
export function telemetry({ tracer, recordContent = false, clock = systemClock }: TelemetryOptions = {}): Middleware {
  const traces = new Traces(tracer);
  return readsRequests({
    name: "telemetry",
    async beforeIteration(context) {
      const trace = await traces.of(context);
      trace?.turn.setAttributes(modelAttributes(context.request));
    },
    wrapModelCall(context, request, next) {
      const { signal, sessionId: conversationId } = context;
      const tracing = { clock, recordContent, signal, conversationId };
      return tracedChat(traces.of(context), request, next, tracing);
    },
    async wrapToolCall(context, next) {
      const trace = await traces.of(context);
      return trace ? tracedTool(trace, context, next, recordContent) : next();
    },
    async onError(context, error) {
      (await traces.of(context))?.failCall(context.call.toolCallId, error);
    },
    async afterTurn(context, turn) {
      const trace = await traces.of(context);
      if (!trace) return;
      noteTurn(trace.turn, turn);
      if (recordContent) noteContent(trace.turn, turn);
      trace.end();
    },
  });
}

/** The traces of the runs under way. */
class Traces {
  readonly #tracer: Tracer | undefined;
  readonly #runs = new Map<string, Promise<RunTrace | undefined>>();
  #api: Promise<TraceApi | undefined> | undefined;

  constructor(tracer: Tracer | undefined) {
    this.#tracer = tracer;
  }

  /** Begins a run's trace when it is first asked for; undefined when there is nowhere to trace to or the run is over. */
  of(context: HookContext): Promise<RunTrace | undefined> {
    let trace = this.#runs.get(context.runId);
    if (!trace) {
      trace = this.#begin(context);
      if (!context.signal.aborted) this.#runs.set(context.runId, trace);
    }
    return trace;
  }

  async #begin(context: HookContext): Promise<RunTrace | undefined> {
    const { runId, signal, agent } = context;
    this.#api ??= loadTraceApi();
    const api = await this.#api;
    const tracer = this.#tracer ?? api?.trace.getTracer("bough");
    const onEnd = () => this.#runs.delete(runId);
    if (!tracer || signal.aborted) {
      onEnd();
      return undefined;
    }
    const name = agent.name ?? agent.id;
    const title = name === undefined ? "invoke_agent" : `invoke_agent ${name}`;
    return new RunTrace(title, turnAttributes(context), { tracer, api, signal, onEnd });
  }
}

async function tracedTool(
  trace: RunTrace,
  context: ToolCallContext,
  next: () => Promise<ToolOutput>,
  recordContent: boolean,
): Promise<ToolOutput> {
  const { call, tool, input } = context;
  const span = trace.openCall(call.toolCallId, `execute_tool ${tool.name}`, {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": tool.name,
    "gen_ai.tool.call.id": call.toolCallId,
    "gen_ai.tool.type": "function",
    ...(tool.description !== undefined && { "gen_ai.tool.description": tool.description }),
    ...(recordContent && { "gen_ai.tool.call.arguments": JSON.stringify(input) }),
  });
  if (!span) return next();
  try {
    const output = await trace.within(span, next);
    if (recordContent) span.setAttribute("gen_ai.tool.call.result", resultText(output));
    const isError = output.type === "error-text" || output.type === "error-json";
    if (isError && !trace.isFailed(span)) noteError(span, "tool_error", "The tool returned an error.");
    return output;
  } catch (error) {
    // A run that leaves its work (interrupted, parked) has not failed.
    const hasFailed = error instanceof Error && !(error instanceof AbortReason);
    if (hasFailed && !context.signal.aborted) noteFailure(span, error);
    throw error;
  } finally {
    trace.close(span);
  }
}

function turnAttributes({ agent, sessionId, branchId, turnId, runId, resumed, ...asked }: HookContext): Attributes {
  const { user } = asked.identity ?? {};
  return {
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.conversation.id": sessionId,
    // What most viewers group by.
    "session.id": sessionId,
    ...(user !== undefined && { "user.id": user }),
    ...(agent.id !== undefined && { "gen_ai.agent.id": agent.id }),
    ...(agent.name !== undefined && { "gen_ai.agent.name": agent.name }),
    "bough.branch.id": branchId,
    "bough.turn.id": turnId,
    "bough.run.id": runId,
    "bough.run.resumed": resumed,
  };
}

function modelAttributes({ model }: ModelRequest): Attributes {
  return { "gen_ai.provider.name": providerName(model.provider), "gen_ai.request.model": model.modelId };
}

/** Viewers show these of the span at the top as input and output of the trace. */
function noteContent(span: Span, { messages, reason, status }: TurnSummary): void {
  const { input, output } = turnMessages(messages, status === "failed" ? "error" : (reason ?? "stop"));
  if (input !== undefined) span.setAttribute("gen_ai.input.messages", input);
  if (output !== undefined) span.setAttribute("gen_ai.output.messages", output);
}

function resultText(output: ToolOutput): string {
  const bare = bareOutput(output);
  return typeof bare === "string" ? bare : JSON.stringify(bare);
}

function noteTurn(span: Span, { status, reason, iterations, usage, error }: TurnSummary): void {
  span.setAttributes({
    "bough.turn.status": status,
    "bough.turn.iterations": iterations,
    ...(reason !== undefined && { "bough.turn.reason": reason }),
    ...numbers({
      "gen_ai.usage.input_tokens": usage.inputTokens,
      "gen_ai.usage.output_tokens": usage.outputTokens,
      "gen_ai.usage.cache_read.input_tokens": usage.cachedInputTokens,
      "gen_ai.usage.cache_creation.input_tokens": usage.cacheWriteTokens,
      "gen_ai.usage.reasoning.output_tokens": usage.reasoningTokens,
    }),
  });
  if (status === "failed") noteFailure(span, error ?? "The turn failed.");
}
