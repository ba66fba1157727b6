// The tracer port: as much of OpenTelemetry's API as telemetry calls. The package itself is loaded when it is there.

/** The value of a span attribute. */
export type AttributeValue = string | number | boolean | string[];
/** Attributes by name. */
export type Attributes = Record<string, AttributeValue>;

/** The part of an OpenTelemetry span that is used. */
export interface Span {
  setAttribute(key: string, value: AttributeValue): unknown;
  setAttributes(attributes: Attributes): unknown;
  recordException(exception: { name?: string; message: string; code?: string }): unknown;
  setStatus(status: { code: number; message?: string }): unknown;
  end(): void;
}

/** An OpenTelemetry tracer, as `trace.getTracer()` returns it. */
export interface Tracer {
  startSpan(name: string, options?: { kind?: number; attributes?: Attributes }, context?: unknown): Span;
}

/** The part of the OpenTelemetry API that makes spans parents of others. */
export interface TraceApi {
  readonly context: {
    active(): unknown;
    with<T>(context: unknown, work: () => T): T;
  };
  readonly trace: {
    setSpan(context: unknown, span: Span): unknown;
    getTracer(name: string): Tracer;
  };
}

/** The numbers of the specification. */
export const spanKind = { internal: 0, client: 2 } as const;
export const statusError = 2;

/** The tracer of the registered OpenTelemetry SDK; undefined if `@opentelemetry/api` is not installed. */
export async function loadTracer(): Promise<Tracer | undefined> {
  return (await loadTraceApi())?.trace.getTracer("bough");
}

export async function loadTraceApi(): Promise<TraceApi | undefined> {
  try {
    return (await import("@opentelemetry/api")) as unknown as TraceApi;
  } catch (error) {
    const { code } = Object(error) as { code?: unknown };
    if (code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND") return undefined;
    throw error;
  }
}
