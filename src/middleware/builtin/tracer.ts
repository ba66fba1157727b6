// The tracer port: as much of OpenTelemetry's API as telemetry calls. The package itself is loaded when it is there.

/** What an attribute of a span can be. */
export type AttributeValue = string | number | boolean | string[];
/** Attributes by name. */
export type Attributes = Record<string, AttributeValue>;

/** An OpenTelemetry span, as much of it as is used. */
export interface Span {
  setAttribute(key: string, value: AttributeValue): unknown;
  setAttributes(attributes: Attributes): unknown;
  recordException(exception: { name?: string; message: string; code?: string }): unknown;
  setStatus(status: { code: number; message?: string }): unknown;
  end(): void;
}

/** An OpenTelemetry tracer: what `trace.getTracer()` gives. */
export interface Tracer {
  startSpan(name: string, options?: { kind?: number; attributes?: Attributes }, context?: unknown): Span;
}

/** How spans get to be each other's parents. */
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

/** The tracer of the registered OpenTelemetry SDK, or nothing when `@opentelemetry/api` is not installed. */
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
