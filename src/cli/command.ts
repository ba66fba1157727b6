import type { ArgDef, ArgsDef, ParsedArgs } from "citty";
import { BoughError } from "../base/errors.ts";
import type { ScopeObject } from "../sessions/index.ts";
import type { Terminal } from "./terminal.ts";

/** What every command receives. */
export interface Surroundings {
  readonly terminal: Terminal;
  /** Aborts on Ctrl-C. */
  readonly signal: AbortSignal;
}

export interface Call<Args extends ArgsDef> extends Surroundings {
  readonly args: ParsedArgs<Args>;
  /** All positional arguments, as typed. */
  readonly words: readonly string[];
}

/** One command: exported by a file in commands/ and listed in the table (commands.ts). */
export interface Command<Args extends ArgsDef = ArgsDef> {
  readonly args: Args;
  /** Whether the last positional argument may be given several times. */
  readonly isVariadic?: boolean;
  /** Example commands for the help screen, without "bough". */
  readonly examples: readonly string[];
  /** Returns the exit code, if it is not 0. */
  run(call: Call<Args>): Promise<number | undefined>;
}

export function defineCommand<const Args extends ArgsDef>(command: Command<Args>): Command<Args> {
  return command;
}

/** An entry of the table: a command that is loaded when it is used, or a group of commands. */
export type Entry = Leaf | Group;

export interface Leaf {
  readonly summary: string;
  // biome-ignore lint/suspicious/noExplicitAny: the table holds commands of all kinds
  load(): Promise<Command<any>>;
}

export interface Group {
  readonly summary: string;
  readonly commands: Readonly<Record<string, Entry>>;
}

export const storeArg = {
  store: { type: "string", valueHint: "URL", description: "the store (default: BOUGH_STORE, else ./.bough/bough.db)" },
} satisfies Record<string, ArgDef>;

/** The store as a positional argument, for commands about a store. */
export const storeWord = {
  url: { ...storeArg.store, type: "positional", required: false },
} satisfies Record<string, ArgDef>;

/** A branch, for commands about one. */
export const branchArgs = {
  session: { type: "positional", valueHint: "SESSION", required: true, description: "the session's id" },
  branch: {
    type: "positional",
    valueHint: "BRANCH",
    required: false,
    description: "the branch's id; optional if there is only one",
  },
} as const satisfies Record<string, ArgDef>;

export function scopeOf({ session, branch }: { session: string; branch?: string | undefined }): ScopeObject {
  return branch === undefined ? { sessionId: session } : { sessionId: session, branchId: branch };
}

export const jsonArg = {
  json: { type: "boolean", description: "print JSON for scripts" },
} satisfies Record<string, ArgDef>;

export const yesArg = {
  yes: { type: "boolean", alias: "y", description: "don't ask for confirmation" },
} satisfies Record<string, ArgDef>;

/** An error in what the user typed: the process exits with 2. */
export function misuse(message: string, data: Record<string, unknown> = {}): BoughError {
  return new BoughError("invalid_argument", message, { data });
}

/** Throws if Ctrl-C was pressed; `next` tells the user how to continue. */
export function stopIfAsked(signal: AbortSignal, next: string): void {
  if (signal.aborted) throw new BoughError("aborted", `Stopped. ${next}`);
}

/** Parses an option that is an integer ≥ 0. */
export function wholeNumber(text: string, option: string): number {
  if (!/^\d{1,15}$/.test(text)) throw misuse(`--${option} must be an integer ≥ 0, not "${text}".`);
  return Number(text);
}
