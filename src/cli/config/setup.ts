// What a server and a chat begin with: agents, a store, and how to serve them, from a configuration or from nothing.

import type { ArgDef } from "citty";
import type { AgentOptions } from "../../agent/index.ts";
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
  /** Where it comes from; nothing when there is no configuration. */
  readonly file?: string;
  readonly agents: Readonly<Record<string, AgentOptions>>;
  /** By id, who speaks. */
  readonly about: Readonly<Record<string, string>>;
  readonly store: Store | string;
  readonly config: Omit<CheckedConfig, "agents" | "store">;
}

interface SetupArgs {
  readonly config?: string | undefined;
  readonly store?: string | undefined;
}

/** A configuration is a program and may never come to its end; whoever wants to stop need not wait for it. */
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

/** A store as it may be shown. */
export function showStore(store: Store | string): string {
  return typeof store === "string" ? showUrl(store) : store.kind;
}

function modelName(model: AgentOptions["model"]): string {
  return typeof model === "string" ? model : `${model.provider}/${model.modelId}`;
}
