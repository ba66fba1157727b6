// RunTrace: the spans of one run, below the span of its turn.
//   RunTrace-1. Every span ends exactly once: by the code that opened it, or when the run's signal aborts, inner ones first.
//   RunTrace-2. After the turn's span has ended no other is opened.

import { redactSecrets } from "../../base/redact.ts";
import { describeError } from "../../models/index.ts";
import { type Attributes, type Span, spanKind, statusError, type TraceApi, type Tracer } from "./tracer.ts";

export interface RunTraceOptions {
  readonly tracer: Tracer;
  /** Without it the spans stand side by side. */
  readonly api: TraceApi | undefined;
  readonly signal: AbortSignal;
  /** Told when the turn's span has ended. */
  readonly onEnd: () => void;
}

export class RunTrace {
  readonly #options: RunTraceOptions;
  readonly #open = new Set<Span>();
  readonly #byCall = new Map<string, Span>();
  readonly #failed = new Set<Span>();
  /** The span of the turn. */
  readonly turn: Span;

  constructor(name: string, attributes: Attributes, options: RunTraceOptions) {
    this.#options = options;
    this.turn = options.tracer.startSpan(name, { kind: spanKind.internal, attributes });
    this.#open.add(this.turn);
    options.signal.addEventListener("abort", this.#abort, { once: true });
  }

  /** A span below the turn's; undefined when the run is over. */
  open(name: string, kind: number, attributes: Attributes): Span | undefined {
    if (!this.#open.has(this.turn)) return undefined;
    const { tracer, api } = this.#options;
    const parent = api?.trace.setSpan(api.context.active(), this.turn);
    const span = tracer.startSpan(name, { kind, attributes }, parent);
    this.#open.add(span);
    return span;
  }

  /** A span that can be found by the call it belongs to. */
  openCall(callId: string, name: string, attributes: Attributes): Span | undefined {
    const span = this.open(name, spanKind.internal, attributes);
    if (span) this.#byCall.set(callId, span);
    return span;
  }

  /** Notes on a call's span what its tool threw. */
  failCall(callId: string, error: unknown): void {
    const span = this.#byCall.get(callId);
    if (!span || !this.#open.has(span)) return;
    this.#failed.add(span);
    noteFailure(span, error);
  }

  isFailed(span: Span): boolean {
    return this.#failed.has(span);
  }

  /** Does the work with the span as the active one, so that spans of others stand below it. */
  within<T>(span: Span, work: () => T): T {
    const { api } = this.#options;
    return api ? api.context.with(api.trace.setSpan(api.context.active(), span), work) : work();
  }

  /** Ends a span; one that the run's end has ended already stays as it is. */
  close(span: Span): void {
    if (this.#open.delete(span)) span.end();
  }

  /** Ends what is still open, the turn's span last. */
  end(): void {
    this.#options.signal.removeEventListener("abort", this.#abort);
    for (const span of [...this.#open].reverse()) this.close(span);
    this.#options.onEnd();
  }

  readonly #abort = (): void => {
    this.turn.setAttribute("bough.run.aborted", true);
    this.end();
  };
}

/** Notes on a span what went wrong, without prompts, responses or stacks. */
export function noteFailure(span: Span, error: unknown): void {
  const failure = describeError(error, redactSecrets);
  span.recordException(failure);
  noteError(span, failure.code ?? failure.name ?? "_OTHER", failure.message);
}

export function noteError(span: Span, type: string, message: string): void {
  span.setAttribute("error.type", type);
  span.setStatus({ code: statusError, message });
}
