// StateBag: the declared state of one run. Owns what the run has read and changed; the store owns what is kept.
//   StateBag-1. A value that was handed out never changes; a change is a new value.
//   StateBag-2. Nothing comes between the reading and the writing of an update: branch and run values change without an await,
//       session values inside the store's own change, which computes again when another writer was faster.
//   StateBag-3. Branch changes are collected and written with the turn's close (branchPatch); session changes are written at once.
//   StateBag-4. What is stored by a newer version is never written; the run works on a value of its own.
//   StateBag-5. Undeclared keys are kept unchanged.
//   StateBag-6. Reading writes nothing by itself: a migrated session value is stored with its next change, a migrated branch
//       value with the turn. One that could not be read stays stored until something is written in its place.

import { BoughError } from "../base/errors.ts";
import { encodeJson, type Json, type JsonObject, metadataLimits } from "../base/json.ts";
import type { StateAccess, StateHandle } from "../tools/index.ts";
import { checked, type Held, initialOf, type Loaded, load, slotOf, storedKeys, toStored } from "./stored-state.ts";

/** A difference between stored state and its declaration. */
export interface StateMigration {
  readonly scope: "branch" | "session";
  readonly key: string;
  readonly change: "added" | "removed" | "migrated" | "reset" | "newer";
  /** The stored version. */
  readonly from?: number;
  /** The declared version. */
  readonly to?: number;
}

/** Where a run's state comes from and goes to. */
export interface StateBagOptions {
  /** The branch's state as the run found it. */
  readonly branch: JsonObject;
  /** The session's state as it is now. */
  session(): Promise<JsonObject>;
  /** Writes the merge patch that `change` makes of the state as it is then; may call it again when another was faster. */
  changeSession(change: (state: JsonObject) => JsonObject): Promise<JsonObject>;
  /** Told once for each difference. */
  report(migration: StateMigration): void;
  readonly declared: readonly StateHandle[];
}

/** A piece of state that lives in the bag: of the run, of the branch, or one that can't be written (StateBag-4). */
interface Entry {
  readonly handle: StateHandle;
  now: Held;
  /** The text that needs no writing; undefined when the stored form is of an older version. */
  readonly kept: string | undefined;
  readonly isKept: boolean;
}

/** From one value to the next; each handle's own type is known to the caller alone. */
// As a method, so that a change of any handle's type is one.
type Change = { change(value: Json): Json }["change"];

/** The declared state of one run. */
export class StateBag implements StateAccess {
  readonly #options: StateBagOptions;
  /** Those that are declared, and those that are used all the same. */
  readonly #handles = new Map<string, StateHandle>();
  readonly #entries = new Map<string, Entry>();
  /** What was made of a session's stored values, so that the same one is not read twice. */
  readonly #read = new Map<string, { stored: Json | undefined; loaded: Loaded }>();
  readonly #reported = new Set<string>();
  #isSessionCompared = false;

  constructor(options: StateBagOptions) {
    this.#options = options;
    for (const handle of options.declared) this.#handles.set(handle.key, handle);
  }

  /** Reports stored branch state that is not declared, and the reverse. Session state is compared when it is first read. */
  begin(): void {
    this.#compare("branch", this.#options.branch);
  }

  async get<T extends Json>(handle: StateHandle<T>): Promise<T> {
    const entry = this.#entryOf(handle);
    if (entry) return entry.now.value as T;
    const loaded = this.#fromSession(handle, await this.#session());
    return (this.#entries.get(handle.key)?.now ?? loaded).value as T;
  }

  async set<T extends Json>(handle: StateHandle<T>, value: T): Promise<void> {
    await this.update(handle, () => value);
  }

  /** `change` may be called more than once for session state. */
  async update<T extends Json>(handle: StateHandle<T>, change: (value: T) => T): Promise<T> {
    const entry = this.#entryOf(handle);
    return (entry ? this.#change(entry, change) : await this.#changeSession(handle, change)) as T;
  }

  /** The merge patch that brings the branch's state to what the run made of it; {} when nothing changed. */
  branchPatch(): JsonObject {
    const patch: JsonObject = {};
    for (const { handle, now, kept, isKept } of this.#entries.values()) {
      if (isKept && now.text !== kept) patch[slotOf(handle)] = toStored(handle, now.value);
    }
    return patch;
  }

  /** The entry of what lives in the bag; undefined for session state, which lives in the store. */
  #entryOf(handle: StateHandle): Entry | undefined {
    const { key, scope } = handle;
    const known = this.#handles.get(key);
    if (known === undefined) this.#handles.set(key, handle);
    else if (known !== handle) {
      throw new BoughError(
        "invalid_argument",
        `State "${key}" is used by two handles; declare it once and share the handle.`,
        { data: { key } },
      );
    }
    const entry = this.#entries.get(key);
    if (entry || scope === "session") return entry;
    if (scope === "run") return this.#enter({ handle, now: initialOf(handle), kept: undefined, isKept: false });
    const loaded = load(handle, own(this.#options.branch, slotOf(handle)));
    this.#reportLoaded(handle, loaded);
    const kept = loaded.outcome === "migrated" ? undefined : loaded.text;
    return this.#enter({ handle, now: loaded, kept, isKept: loaded.outcome !== "newer" });
  }

  #enter(entry: Entry): Entry {
    this.#entries.set(entry.handle.key, entry);
    return entry;
  }

  #change(entry: Entry, change: Change): Json {
    const next = checked(entry.handle, change(entry.now.value));
    if (entry.isKept) checkSize(entry.handle, next.value);
    if (next.text !== entry.now.text) entry.now = next;
    return entry.now.value;
  }

  async #session(): Promise<JsonObject> {
    const state = await this.#options.session();
    this.#compareSession(state);
    return state;
  }

  async #changeSession(handle: StateHandle, change: Change): Promise<Json> {
    let written: Held | undefined;
    await this.#options.changeSession((state) => {
      written = undefined;
      this.#compareSession(state);
      const before = this.#fromSession(handle, state);
      if (before.outcome === "newer") return {};
      written = checked(handle, change(before.value));
      checkSize(handle, written.value);
      if (written.text === before.text && before.outcome !== "migrated") return {};
      return { [slotOf(handle)]: toStored(handle, written.value) };
    });
    return written ? written.value : this.#change(this.#entries.get(handle.key)!, change);
  }

  /** StateBag-4: the first to meet a value of a newer version makes the run's own, and the store is not asked again. */
  #fromSession(handle: StateHandle, state: JsonObject): Loaded {
    const stored = own(state, slotOf(handle));
    const known = this.#read.get(handle.key);
    if (known && known.stored === stored) return known.loaded;
    const loaded = load(handle, stored);
    this.#reportLoaded(handle, loaded);
    if (loaded.outcome !== "newer") this.#read.set(handle.key, { stored, loaded });
    else if (!this.#entries.has(handle.key)) {
      this.#enter({ handle, now: loaded, kept: undefined, isKept: false });
    }
    return loaded;
  }

  #compareSession(state: JsonObject): void {
    if (this.#isSessionCompared) return;
    this.#isSessionCompared = true;
    this.#compare("session", state);
  }

  #compare(scope: "branch" | "session", state: JsonObject): void {
    const stored = storedKeys(state);
    if (stored.size === 0) return;
    for (const { key, scope: declared, version: to } of this.#handles.values()) {
      if (declared === scope && !stored.delete(key)) this.#report({ scope, key, change: "added", to });
    }
    for (const [key, from] of stored) {
      this.#report({ scope, key, change: "removed", ...(from !== undefined && { from }) });
    }
  }

  #reportLoaded({ key, scope, version: to }: StateHandle, { outcome, from }: Loaded): void {
    if (scope === "run" || outcome === "current" || outcome === "absent") return;
    this.#report({ scope, key, change: outcome, ...(from !== undefined && { from }), to });
  }

  #report(migration: StateMigration): void {
    const { scope, key, change } = migration;
    const name = `${change} ${scope} ${key}`;
    if (this.#reported.has(name)) return;
    this.#reported.add(name);
    this.#options.report(migration);
  }
}

function own(state: JsonObject, name: string): Json | undefined {
  return Object.hasOwn(state, name) ? state[name] : undefined;
}

/** Refused here, where the caller gets the error, and not when the turn closes. */
function checkSize(handle: StateHandle, value: Json): void {
  encodeJson(value, `State "${handle.key}"`, metadataLimits);
}
