// Scopes: where in a workflow its code is. A step's identity is the path of the scopes around it and its name in there.
//   FlowScope-1. A name that is used again in the same scope is counted: `fetch`, `fetch#2`. An explicit key is used once.
//   FlowScope-2. Names can't be mistaken for paths: what separates them is escaped.

import type { AsyncLocalStorage } from "node:async_hooks";
import { allowListeners } from "../../base/abort.ts";
import { BoughError } from "../../base/errors.ts";
import { isWellFormed } from "../../base/json.ts";
import { nodeModule } from "../../base/node.ts";

/** A place for steps: the root of an execution, a branch of `all`, an item of `map`, or a nested workflow. */
export class FlowScope {
  /** The beginning of the keys in it. */
  readonly path: string;
  /** Aborts when what is done here is not needed any more. */
  readonly signal: AbortSignal;
  readonly #counts = new Map<string, number>();
  readonly #keys = new Set<string>();

  constructor(path: string, signal: AbortSignal) {
    this.path = path;
    this.signal = signal;
    allowListeners(signal);
  }

  /** The key of the next step with this name (FlowScope-1). */
  keyFor(name: string, explicit?: string): string {
    checkName(name, "name");
    if (explicit !== undefined) {
      checkName(explicit, "key");
      return this.#take(escapeItem(explicit));
    }
    const plain = escapeName(name);
    for (;;) {
      const count = (this.#counts.get(plain) ?? 0) + 1;
      this.#counts.set(plain, count);
      const key = count === 1 ? plain : `${plain}#${count}`;
      if (!this.#keys.has(key)) return this.#take(key);
    }
  }

  #take(key: string): string {
    const whole = this.path + key;
    if (this.#keys.has(key)) {
      const sentence = `The key "${whole}" is used twice in this execution; a key identifies one step.`;
      throw new BoughError("invalid_argument", sentence, { data: { key: whole } });
    }
    if (whole.length > longestKey) {
      const sentence = `The key of a step can't be longer than ${longestKey} characters: "${whole.slice(0, 64)}…".`;
      throw new BoughError("invalid_argument", sentence, { data: { length: whole.length } });
    }
    this.#keys.add(key);
    return whole;
  }
}

/** Keys are ids of calls, too. */
const longestKey = 240;

function checkName(name: unknown, what: "name" | "key"): asserts name is string {
  if (typeof name === "string" && name.length > 0 && isWellFormed(name) && !hasControl(name)) return;
  const sentence = `The ${what} of a step must be a non-empty string without control characters.`;
  throw new BoughError("invalid_argument", sentence, { data: { [what]: String(name).slice(0, 64) } });
}

function hasControl(name: string): boolean {
  for (let i = 0; i < name.length; i++) if (name.charCodeAt(i) < 32 || name.charCodeAt(i) === 127) return true;
  return false;
}

/** FlowScope-2. */
function escapeName(name: string): string {
  return name.replaceAll(/[%/[\]#]/g, encodeURIComponent);
}

/** A key that is given may count by itself. */
export function escapeItem(key: string): string {
  return key.replaceAll(/[%/[\]]/g, encodeURIComponent);
}

type Scopes = AsyncLocalStorage<{ readonly owner: object; readonly scope: FlowScope }>;
let scopes: Scopes | undefined;

/** Loaded when it is needed: elsewhere than in Node, bundles of a server have workflows without running one. */
function openScopes(): Scopes {
  const hooks = nodeModule<typeof import("node:async_hooks")>("node:async_hooks");
  if (hooks) return new hooks.AsyncLocalStorage();
  throw new BoughError("dependency_missing", "Workflows need node:async_hooks, which this platform does not have.");
}

/** Runs code in a scope of an execution: what it calls, also later, is in there. */
export function within<T>(owner: object, scope: FlowScope, code: () => T): T {
  scopes ??= openScopes();
  return scopes.run({ owner, scope }, code);
}

/** The scope of this execution that the code at work is in; undefined in its outermost. */
export function scopeOf(owner: object): FlowScope | undefined {
  const at = scopes?.getStore();
  return at?.owner === owner ? at.scope : undefined;
}
