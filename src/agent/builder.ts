import { BoughError } from "../base/errors.ts";
import type { Store } from "../log/store.ts";
import type { Middleware } from "../middleware/index.ts";
import type { ModelChoice } from "../models/index.ts";
import type { Durable } from "../runs/index.ts";
import type { ToolSet, ToolSource } from "../tools/index.ts";
import { Agent } from "./agent.ts";
import type { AgentOptions } from "./options.ts";
import { toolSets } from "./plan.ts";

/** Builds an agent step by step, from the same options as `createAgent`. */
export class AgentBuilder {
  readonly #options: Partial<AgentOptions>;

  constructor(options: Partial<AgentOptions> = {}) {
    this.#options = options;
  }

  withName(name: string): AgentBuilder {
    return this.#with({ name });
  }

  withModel(model: ModelChoice): AgentBuilder {
    return this.#with({ model });
  }

  withInstructions(instructions: string): AgentBuilder {
    return this.#with({ instructions });
  }

  withTools(...tools: (ToolSet | ToolSource)[]): AgentBuilder {
    return this.#with({ tools: [...toolSets(this.#options.tools), ...tools] });
  }

  withSessionStore(store: Store | string, options: Pick<AgentOptions, "persistAfterTurn"> = {}): AgentBuilder {
    return this.#with({ store, ...options });
  }

  withDurableExecution(durable: Durable): AgentBuilder {
    return this.#with({ durable });
  }

  withMiddleware(...middleware: Middleware[]): AgentBuilder {
    return this.#with({ middleware: [...(this.#options.middleware ?? []), ...middleware] });
  }

  build(): Agent {
    const { model, ...options } = this.#options;
    if (model === undefined) throw new BoughError("invalid_argument", "An agent needs a model: call withModel first.");
    return new Agent({ model, ...options });
  }

  #with(more: Partial<AgentOptions>): AgentBuilder {
    return new AgentBuilder({ ...this.#options, ...more });
  }
}
