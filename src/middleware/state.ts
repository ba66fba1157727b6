// State handles: a piece of state is declared once, with its scope, its version and what it looks like.

import { BoughError } from "../base/errors.ts";
import { checkJson, factLimits, type Json } from "../base/json.ts";
import { anything, checkOptions, fn, oneOf, optionTable, text } from "../base/options.ts";
import { reservedState } from "../projection/reserved-state.ts";
import type { StateHandle } from "../tools/index.ts";

/** The part of Standard Schema that is used here; most schema libraries implement it. */
export interface StateSchema<T = unknown> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<T> | Promise<SchemaResult<T>>;
    readonly types?: { readonly input: unknown; readonly output: T } | undefined;
  };
}

type SchemaResult<T> =
  | { readonly value: T; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string }[] };

/** The declaration of a piece of state. */
export interface StateDeclaration<T> {
  /** Unique among the state of an agent. */
  readonly key: string;
  /** "run": in memory, for one run. "branch": stored with the turn, inherited by forks. "session": stored at once, shared. */
  readonly scope: StateHandle["scope"];
  /** Increment it when older stored values can't be read as they are (default 1). */
  readonly version?: number;
  /** The value before the first write. */
  readonly initial: T;
  /** Converts a value of an older version. Without it, an older value is replaced by the initial one. */
  readonly migrate?: (value: Json, from: number) => T;
}

const declarationTable = optionTable<StateDeclaration<Json> & { readonly schema?: StateSchema }>({
  key: text,
  scope: oneOf("run", "branch", "session"),
  version: anything,
  initial: anything,
  schema: { fits: (value) => "~standard" in Object(value), wanted: "a Standard Schema, such as zod's" },
  migrate: fn,
});

/**
 * Declares a piece of state. With a `schema`, values are validated when they are read and written. The schema must be
 * synchronous and must accept its own output.
 */
export function defineState<T>(
  declaration: StateDeclaration<NoInfer<T>> & { readonly schema: StateSchema<T> },
): StateHandle<Extract<T, Json>>;
export function defineState<T>(declaration: StateDeclaration<T>): StateHandle<Extract<T, Json>>;
export function defineState(
  declaration: StateDeclaration<Json> & { readonly schema?: StateSchema<Json> },
): StateHandle<Json> {
  checkOptions("The declaration of state", declaration, declarationTable);
  const { key, scope, version = 1, initial, schema, migrate } = declaration;
  if (key === "" || key === undefined) throw new BoughError("invalid_argument", "State needs a key.");
  if (reservedState.has(`@${key}`)) {
    throw new BoughError("invalid_argument", `The state key "${key}" is reserved.`, { data: { key } });
  }
  if (!Number.isInteger(version) || version < 1) {
    throw new BoughError("invalid_argument", `The version of state "${key}" must be an integer ≥ 1.`, {
      data: { key },
    });
  }
  checkJson(initial, `The initial value of state "${key}"`, factLimits);
  const parse = schema && parseBy(schema, key);
  return {
    key,
    scope,
    version,
    initial: parse ? parse(initial) : initial,
    ...(parse && { parse }),
    ...(migrate && { migrate }),
  };
}

function parseBy(schema: StateSchema<Json>, key: string): (value: Json) => Json {
  return (value) => {
    const result = schema["~standard"].validate(value);
    if (result instanceof Promise) {
      throw new BoughError("invalid_argument", `The schema of state "${key}" must be synchronous.`, { data: { key } });
    }
    if (result.issues) {
      const why = result.issues.map(({ message }) => message).join("; ");
      throw new BoughError("invalid_argument", `The value does not match the schema of state "${key}": ${why}`, {
        data: { key },
      });
    }
    return result.value;
  };
}
