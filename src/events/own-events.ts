// Own events: event types that a program defines. The log keeps them as kinds that Bough itself does not know, so every reader
// passes them over without harm; a reader that has the definition gets them back under their own type.
//   OwnEvents-1. An own type never has the noun of a built-in one: neither now nor when Bough adds a type.
//   OwnEvents-2. What is stored is what the schema gave out; an older version is upcast when it is read, a newer one stays unknown.

import { BoughError } from "../base/errors.ts";
import type { Json } from "../base/json.ts";
import { checkOptions, optionKeys } from "../base/options.ts";
import type { UnknownFact } from "./codec.ts";
import type { UnknownEvent } from "./envelope.ts";
import { keptEvents } from "./kept.ts";
import { liveEvents } from "./live.ts";

/** A Standard Schema (zod, valibot, arktype …) for the data of your own event type. */
export interface EventSchema<Input = unknown, Output = unknown> {
  readonly "~standard": {
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    // biome-ignore lint/suspicious/noExplicitAny: each library has its own type of issue
    readonly validate: (value: unknown) => any;
  };
}

type TypesOf<Schema> = Schema extends { readonly "~standard": { readonly types?: infer Types } }
  ? NonNullable<Types>
  : never;

/** An event type that a program defines with `defineEvent`. */
// biome-ignore lint/suspicious/noExplicitAny: definitions of every input go into one list
export interface OwnEventDefinition<Type extends string = string, Input = any, Data = unknown> {
  readonly type: Type;
  readonly version: number;
  /** Whether it is stored as a fact in the log; otherwise it is only shown live. */
  readonly kept: boolean;
  readonly schema: EventSchema<Input, Data>;
  readonly upcasts: Readonly<Record<number, (data: Json) => Json>>;
  /** Whether an event is of this type. */
  is(event: { readonly type: string }): boolean;
  /** Returns the event with typed data if it is of this type, otherwise undefined. */
  read(event: { readonly type: string }): OwnEvent<Type, Data> | undefined;
}

/** An event of your own type, as a reader sees it. */
export type OwnEvent<Type extends string = string, Data = unknown> = Omit<UnknownEvent, "type" | "payload" | "seq"> & {
  readonly type: Type;
  readonly data: Data;
  /** Its place in the log, if it is kept. */
  readonly seq?: number;
  /** The call of the tool that emitted it. */
  readonly callId?: string;
};

/** The event that a definition defines. */
export type EventFrom<Definition> =
  // biome-ignore lint/suspicious/noExplicitAny: what it takes does not matter here
  Definition extends OwnEventDefinition<infer Type, any, infer Data>
    ? string extends Type
      ? never
      : OwnEvent<Type, Data>
    : never;

const keptName = /^[a-z][a-z0-9-]*\.[a-z][a-z0-9-]*$/;
const liveName = /^[a-z][a-z0-9]*(-[a-z0-9]+)+$/;
const reservedNouns = new Set([...keptEvents, ...liveEvents].map(({ type }) => nounOf(type)));

function nounOf(type: string): string {
  return type.split(/[.-]/)[0]!;
}

const definitionKeys = optionKeys<Pick<OwnEventDefinition, "type" | "version" | "kept" | "schema" | "upcasts">>({
  type: true,
  version: true,
  kept: true,
  schema: true,
  upcasts: true,
});

/**
 * Defines your own event type: `noun.verbed` for facts, `noun-verb` for live events.
 *
 * @example
 * const orderPlaced = defineEvent({ type: "order.placed", kept: true, schema: z.object({ total: z.number() }) });
 * const agent = createAgent({ model, events: [orderPlaced] });
 * // in a tool: await context.emit(orderPlaced, { total: 12 });
 */
export function defineEvent<const Type extends string, const Schema extends EventSchema>(given: {
  readonly type: Type;
  /** Default 1. A higher version needs an upcast from every earlier one. */
  readonly version?: number;
  readonly kept: boolean;
  readonly schema: Schema;
  /** Convert data to the next version, by the version they start from. */
  readonly upcasts?: Readonly<Record<number, (data: Json) => Json>>;
}): OwnEventDefinition<Type, TypesOf<Schema>["input"], TypesOf<Schema>["output"]> {
  checkOptions("An event's definition", given, definitionKeys);
  const { type, version = 1, kept, schema, upcasts = {} } = given;
  const problem = problemOf({ type, version, kept, schema, upcasts });
  if (problem) throw new BoughError("invalid_argument", problem, { data: { type } });
  const is = (event: { readonly type: string }) => event.type === type;
  const read = (event: { readonly type: string }) => (is(event) ? event : undefined);
  return { type, version, kept, schema, upcasts, is, read } as unknown as ReturnType<typeof defineEvent<Type, Schema>>;
}

function problemOf(given: Pick<OwnEventDefinition, "type" | "version" | "kept" | "schema" | "upcasts">) {
  const { type, version, kept, schema, upcasts } = given;
  if (typeof kept !== "boolean") return "An event is kept or live: pass kept: true or kept: false.";
  if (kept && !keptName.test(type))
    return `A kept event is named "noun.verbed", such as "order.placed", not "${type}".`;
  if (!kept && !liveName.test(type)) return `A live event is named "noun-verb", such as "order-quote", not "${type}".`;
  if (reservedNouns.has(nounOf(type))) return `"${nounOf(type)}" is a noun of Bough's own events; choose another one.`;
  if (!Number.isInteger(version) || version < 1) return "version must be an integer ≥ 1.";
  if (typeof schema?.["~standard"]?.validate !== "function") return "schema must be a Standard Schema, such as zod's.";
  for (let from = 1; from < version; from++) {
    if (typeof upcasts[from] !== "function") return `Version ${version} of "${type}" needs an upcast from ${from}.`;
  }
  return undefined;
}

/** A kept own event before it has a number. */
export function ownDraft(
  { type, version }: OwnEventDefinition,
  data: Json,
  stamp: { id: string; at: number; turnId?: string; callId?: string },
): Omit<UnknownFact, "seq"> {
  const { id, at, ...ids } = stamp;
  const payload = { ...(version > 1 && { v: version }), ...ids, data };
  return { type: `unknown:${type}`, id, at, payload };
}
