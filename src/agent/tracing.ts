// Tracing: whether a run has somewhere to send its spans. An SDK may be registered at any time, so that is asked for each
// run; without one, a run has no telemetry in it and pays for none.

import type { Clock } from "../base/clock.ts";
import { loadTraceApi, type Tracer } from "../middleware/builtin/tracer.ts";
import { type Middleware, telemetry } from "../middleware/index.ts";

/** As much of `@opentelemetry/api` as tells whether an SDK stands behind it. */
interface ProviderApi {
  readonly trace: { getTracerProvider(): { getDelegateTracer?(name: string): unknown } };
}

/** Where every copy of the API's first major version keeps what is registered with it. */
const registry = Symbol.for("opentelemetry.js.api.1");

export class Tracing {
  readonly middleware: Middleware;
  #api: Promise<ProviderApi | undefined> | undefined;

  readonly #hasOwn: boolean;

  constructor(options: { recordContent: boolean; tracer?: Tracer; clock: Clock }) {
    this.middleware = telemetry(options);
    this.#hasOwn = options.tracer !== undefined;
  }

  async isOn(): Promise<boolean> {
    if (this.#hasOwn) return true;
    // Without an SDK there is nothing under it, and loading the API would take longer than the run does.
    if (!(registry in globalThis)) return false;
    this.#api ??= loadTraceApi() as Promise<ProviderApi | undefined>;
    const provider = (await this.#api)?.trace.getTracerProvider();
    if (!provider) return false;
    // The API's own provider passes tracers on, and has none to pass on until an SDK is registered.
    return provider.getDelegateTracer ? provider.getDelegateTracer("bough") !== undefined : true;
  }
}
