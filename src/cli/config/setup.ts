// What serve and chat start with: agents, a store, and how to serve them, with or without a configuration.

import type { ArgDef } from "citty";
import type { AgentOptions } from "../../agent/index.ts";
import { withEvents } from "../../agent/own-events.ts";
import { BoughError } from "../../base/errors.ts";
import type { Store } from "../../log/store.ts";
import { showUrl } from "../place.ts";
import { chooseOwnStore } from "../store.ts";
import { type CheckedConfig, checkConfig } from "./check.ts";
import { demoAgent } from "./demo.ts";
import { loadConfigFile } from "./load.ts";

export const configArg = {
  config: {
    type: "string",
    valueHint: "FILE",
    description: "the configuration (default: ./bough.config.ts|mts|js|mjs|json)",
  },
} satisfies Record<string, ArgDef>;

export interface Setup {
  /** The configuration file; undefined if there is none. */
  readonly file?: string;
  readonly agents: Readonly<Record<string, AgentOptions>>;
  /** A description of each agent's model, by agent id. */
  readonly about: Readonly<Record<string, string>>;
  readonly store: Store | string;
  readonly config: Omit<CheckedConfig, "agents" | "store">;
}

/** Agents that a setup creates for the command, and how to close what belongs to one. */
export interface FoundAgent {
  readonly options: AgentOptions;
  readonly about: string;
  readonly close: () => Promise<void>;
}

interface SetupArgs {
  readonly config?: string | undefined;
  readonly store?: string | undefined;
}

/** A configuration is code and may never finish loading; Ctrl-C does not wait for it. */
export function prepareSetup(args: SetupArgs, signal: AbortSignal): Promise<Setup> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(new BoughError("aborted", "Stopped."));
    signal.addEventListener("abort", stop, { once: true });
    prepare(args).then(resolve, reject);
  });
}

async function prepare(args: SetupArgs): Promise<Setup> {
  const loaded = await loadConfigFile(args.config);
  if (!loaded) {
    const { options, about } = await demoAgent();
    return {
      agents: { demo: options },
      about: { demo: about },
      store: chooseOwnStore(args.store, undefined),
      config: {},
    };
  }
  const { agents, store, ...config } = await checkConfig(loaded);
  const about = Object.fromEntries(Object.entries(agents).map(([id, { model }]) => [id, modelName(model)]));
  return { file: loaded.file, agents, about, store: chooseOwnStore(args.store, store), config };
}

/** Looks an agent up without a server, in the same order: listed, resolved, default. */
export async function findAgent({ agents, config }: Setup, agentId: string): Promise<FoundAgent | undefined> {
  const callbacks: (() => unknown)[] = [];
  const context = { tenant: "", onClose: (callback: () => unknown) => void callbacks.push(callback) };
  const own = Object.hasOwn(agents, agentId) ? agents[agentId] : undefined;
  const options = own ?? (await config.resolveAgent?.(agentId, context)) ?? config.defaultAgent;
  if (!options) return undefined;
  const close = async () => {
    for (const callback of callbacks) await callback();
  };
  return { options: withEvents(options, config.events), about: modelName(options.model), close };
}

/** A store in a form that may be shown. */
export function showStore(store: Store | string): string {
  return typeof store === "string" ? showUrl(store) : store.kind;
}

export function modelName(model: AgentOptions["model"]): string {
  return typeof model === "string" ? model : `${model.provider}/${model.modelId}`;
}
