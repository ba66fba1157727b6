// The configuration file of the command `bough`.

import type { AgentOptions } from "../agent/index.ts";
import type { ServerOptions } from "./options.ts";
import type { ServeOptions } from "./serving.ts";

/** An agent of a configuration. Its id is its key; store, tenant and persistence are the server's. */
export type ConfiguredAgent = Omit<AgentOptions, "id" | "store" | "tenant" | "persistAfterTurn">;

/** An agent, or a function that returns it, which is called once, when the command starts. */
export type AgentSetting = ConfiguredAgent | (() => ConfiguredAgent | Promise<ConfiguredAgent>);

/** The default export of `bough.config.ts`: agents, their store, and how they are served. */
export interface BoughConfig
  extends Omit<ServerOptions, "agents" | "defaultAgent" | "clock" | "logger" | "page">,
    ServeOptions {
  /** Agents by id; optional if there is `resolveAgent` or `defaultAgent`. */
  readonly agents?: Readonly<Record<string, AgentSetting>>;
  /** The agent for every id that is not defined otherwise. */
  readonly defaultAgent?: AgentSetting;
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
