// State handles: a piece of state is declared once, with its scope, its version and what it looks like.

import { BoughError } from "../base/errors.ts";
import { checkJson, factLimits, type Json } from "../base/json.ts";
import type { StateHandle } from "../tools/index.ts";

/** Any schema library's schema (Standard Schema), as much of it as is used here. */
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

/** What there is to say about a piece of state. */
export interface StateDeclaration<T> {
  /** Unique among everything an agent declares. */
  readonly key: string;
  /** "run": in memory, for one run. "branch": kept with the turn, forks. "session": kept at once, shared by branches. */
  readonly scope: StateHandle["scope"];
  /** Grows when stored values of before would be read wrongly (default 1). */
  readonly version?: number;
  /** What it is before anything is written. */
  readonly initial: T;
  /** Makes this version's value of an older one's; without it, an older value is replaced by the initial one. */
  readonly migrate?: (value: Json, from: number) => T;
}

/**
 * Declares a piece of state. With a `schema`, values are checked when they are read and when they are written; it has to
 * be synchronous and to accept what it gives out.
 */
export function defineState<T>(
  declaration: StateDeclaration<NoInfer<T>> & { readonly schema: StateSchema<T> },
): StateHandle<Extract<T, Json>>;
export function defineState<T>(declaration: StateDeclaration<T>): StateHandle<Extract<T, Json>>;
export function defineState(
  declaration: StateDeclaration<Json> & { readonly schema?: StateSchema<Json> },
): StateHandle<Json> {
  const { key, scope, version = 1, initial, schema, migrate } = declaration;
  if (key === "") throw new BoughError("invalid_argument", "State needs a key.");
  if (!Number.isInteger(version) || version < 1) {
    throw new BoughError("invalid_argument", `The version of state "${key}" must be 1, 2, 3 …`, { data: { key } });
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
      throw new BoughError("invalid_argument", `The schema of state "${key}" is asynchronous.`, { data: { key } });
    }
    if (result.issues) {
      const why = result.issues.map(({ message }) => message).join("; ");
      throw new BoughError("invalid_argument", `The value does not fit state "${key}": ${why}`, { data: { key } });
    }
    return result.value;
  };
}
