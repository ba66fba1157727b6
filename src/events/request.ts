// How a turn was asked, as far as JSON can say it. A turn keeps it, so that a resumed turn goes on as it began: after a crash,
// on another node, or when an answer arrives days later.

import * as v from "valibot";
import type { Json, JsonObject } from "../base/json.ts";

/** The caller of a run. A server takes it from its `auth`; a program may pass its own. */
export interface RunIdentity {
  readonly tenant?: string;
  readonly user?: string;
  readonly scopes?: readonly string[];
}

/** A run's output schema as JSON Schema: one, or several by name. */
export interface KeptOutput {
  readonly mode: "native" | "tool";
  /** What the names of the tools begin with, if not with `return_`. */
  readonly toolPrefix?: string;
  readonly schema?: JsonObject;
  readonly union?: { readonly [name: string]: JsonObject };
  /** The run checked the answer with a validator. A resumed run checks it against the JSON Schema. */
  readonly checked?: true;
}

/** A tool that the connected client or the provider runs, as one run defined it. */
export interface KeptTool {
  readonly description?: string;
  readonly inputSchema: JsonObject;
  readonly permission?: boolean;
  /** A tool that the provider runs, by the provider's id for it. */
  readonly provider?: { readonly id: `${string}.${string}`; readonly args: JsonObject };
  /** The run checked the input with a validator. A resumed run checks it against the JSON Schema. */
  readonly checked?: true;
}

/** The request of a run besides its input. */
export interface TurnRequest {
  /** The run's `config` without tools and middleware; a model stands here by its name. */
  readonly config?: JsonObject;
  readonly output?: KeptOutput;
  /** The client tools that the run brought along, by name. */
  readonly tools?: { readonly [name: string]: KeptTool };
  readonly questions?: "wait" | "park" | "deny";
  readonly context?: Json;
  readonly identity?: RunIdentity;
  /** Names of what JSON can't say, such as `config.model`: only a caller who passes it again can resume the turn. */
  readonly missing?: readonly string[];
}

const object = v.custom<JsonObject>(
  (value) => typeof value === "object" && value !== null && !Array.isArray(value),
  "Expected an object",
);

/** The schema of a `TurnRequest`: what is inside its objects is for the run that reads it. */
export const requestSchema = v.strictObject({
  config: v.optional(object),
  output: v.optional(object),
  tools: v.optional(object),
  questions: v.optional(v.picklist(["wait", "park", "deny"])),
  context: v.optional(v.any()),
  identity: v.optional(object),
  missing: v.optional(v.array(v.string())),
}) as unknown as v.GenericSchema<TurnRequest>;
