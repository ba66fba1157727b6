import type * as v from "valibot";
import type { JsonObject } from "../base/json.ts";

/** Where a user interface shows an event; says nothing about whether it is kept. */
export type Channel = "default" | "streaming" | "interactive" | "control";
/** "down" from the agent to its watchers, "up" from a person or client to the agent. */
export type Direction = "down" | "up";

type Schema = v.GenericSchema<Record<string, unknown>>;

/** The definition of one type of event. */
export interface EventDefinition<
  Type extends string = string,
  Kept extends boolean = boolean,
  S extends Schema = Schema,
> {
  readonly type: Type;
  readonly version: number;
  readonly kept: Kept;
  readonly channel: Channel;
  readonly direction: Direction;
  readonly schema: S;
  /** Converts a payload of the previous version to this one; upcasters are applied one after another. */
  readonly upcasts: Readonly<Record<number, (payload: JsonObject) => JsonObject>>;
}

/** The definition of a fact: its schema lists the fields it may have. */
export type KeptDefinition = EventDefinition<string, true, v.StrictObjectSchema<v.ObjectEntries, undefined>>;

interface Details {
  version?: number;
  channel?: Channel;
  direction?: Direction;
  /** By the version it starts from. */
  upcasts?: Record<number, (payload: JsonObject) => JsonObject>;
}

/** An event that is a fact in the log. */
export function kept<const Type extends `${string}.${string}`, const S extends KeptDefinition["schema"]>(
  type: Type,
  schema: S,
  details: Details = {},
): EventDefinition<Type, true, S> {
  return { ...complete(details), type, kept: true, schema };
}

/** An event that is shown and forgotten. */
export function live<const Type extends `${string}-${string}`, const S extends Schema>(
  type: Type,
  schema: S,
  details: Details = {},
): EventDefinition<Type, false, S> {
  return { ...complete(details), type, kept: false, schema };
}

function complete({ version = 1, channel = "default", direction = "down", upcasts = {} }: Details) {
  return { version, channel, direction, upcasts };
}
