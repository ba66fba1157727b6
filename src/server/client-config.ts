// What a client may configure for its run. A client can tighten what the agent allows, never loosen it; only the server's
// program can allow more, with `allowConfig`.

import type { Agent } from "../agent/index.ts";
import { BoughError } from "../base/errors.ts";
import type { RunConfig, Tightening } from "../runs/index.ts";
import type { InputBody } from "../wire/index.ts";
import { Refusal } from "./refusal.ts";

/** Run options that clients may set freely if the server's program lists them in `allowConfig`. */
export type AllowedConfig =
  | "permissionMode"
  | "limits"
  | "maxOutputTokens"
  | "instructions"
  | "addInstructions"
  | "compaction"
  | "model";

type ClientConfig = NonNullable<InputBody["config"]>;

/** Options that a client may only lower. */
const bounds = ["permissionMode", "limits", "maxOutputTokens"] as const;
/** Options without an order of strictness: a client may set them only if the server's program allows it. */
const guarded = ["instructions", "addInstructions", "compaction", "model"] as const;

/** The part of a client's config that the server applies. */
export function clientConfig(
  config: ClientConfig | undefined,
  allowed: readonly AllowedConfig[],
  { models }: Pick<Agent, "models">,
): RunConfig | undefined {
  if (!config) return undefined;
  for (const key of guarded) if (config[key] !== undefined && !allowed.includes(key)) throw refused(key);
  if (config.model !== undefined && !models.includes(config.model)) throw unknownModel(config.model, models);
  const tighten: Record<string, unknown> = {};
  const free: Record<string, unknown> = { ...config };
  for (const key of bounds) {
    if (config[key] === undefined || allowed.includes(key)) continue;
    tighten[key] = config[key];
    delete free[key];
  }
  return { ...free, ...(Object.keys(tighten).length > 0 && { tighten: tighten as Tightening }) } as RunConfig;
}

function refused(key: string): Refusal {
  return new Refusal("forbidden", `This server does not let clients set config.${key}.`, { key });
}

function unknownModel(model: string, models: readonly string[]): BoughError {
  const known =
    models.length > 0 ? `Available: ${models.join(", ")}` : "Clients can't choose among this agent's models";
  return new BoughError("invalid_argument", `The agent has no model "${model}". ${known}.`, { data: { models } });
}
