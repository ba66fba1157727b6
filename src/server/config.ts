// What a configuration file of the command `bough` says.

import type { AgentOptions } from "../agent/index.ts";
import type { ServeOptions } from "./node.ts";
import type { ServerOptions } from "./options.ts";

/** An agent of a configuration; its id is its key, its store that of the configuration, and turns are saved. */
export type ConfiguredAgent = Omit<AgentOptions, "id" | "store" | "persistAfterTurn">;

/** What `bough.config.ts` exports: agents, their store, and how they are served. */
export interface BoughConfig extends Omit<ServerOptions, "agents" | "clock" | "logger" | "page">, ServeOptions {
  /** By id. A function is called once, when the command begins. */
  readonly agents: Readonly<Record<string, ConfiguredAgent | (() => ConfiguredAgent | Promise<ConfiguredAgent>)>>;
}

/**
 * Gives a configuration its types.
 *
 * @example
 * export default defineConfig({
 *   store: "sqlite:./.bough/bough.db",
 *   agents: { helper: { model: "anthropic/claude-sonnet-4-5", instructions: "You are helpful." } },
 * });
 */
export function defineConfig(config: BoughConfig): BoughConfig {
  return config;
}
