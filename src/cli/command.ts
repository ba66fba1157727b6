import type { ArgDef, ArgsDef, ParsedArgs } from "citty";
import { BoughError } from "../base/errors.ts";
import type { Terminal } from "./terminal.ts";

/** What every command is given. */
export interface Surroundings {
  readonly terminal: Terminal;
  /** Aborts when the person wants to stop. */
  readonly signal: AbortSignal;
}

export interface Call<Args extends ArgsDef> extends Surroundings {
  readonly args: ParsedArgs<Args>;
  /** All positional arguments, as they were given. */
  readonly words: readonly string[];
}

/** One command: a file in commands/ exports one, and a line of the table names it. */
export interface Command<Args extends ArgsDef = ArgsDef> {
  readonly args: Args;
  /** Whether the last positional argument may be given several times. */
  readonly isVariadic?: boolean;
  /** Lines for the help screen, without "bough". */
  readonly examples: readonly string[];
  /** Returns the exit code when it is not 0. */
  run(call: Call<Args>): Promise<number | undefined>;
}

export function defineCommand<const Args extends ArgsDef>(command: Command<Args>): Command<Args> {
  return command;
}

/** A line of the table: a command that is loaded when it is used, or a group of them. */
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

/** The store of a command that is about a store. */
export const storeWord = {
  url: { ...storeArg.store, type: "positional", required: false },
} satisfies Record<string, ArgDef>;

export const jsonArg = {
  json: { type: "boolean", description: "print JSON for scripts" },
} satisfies Record<string, ArgDef>;

export const yesArg = {
  yes: { type: "boolean", alias: "y", description: "don't ask" },
} satisfies Record<string, ArgDef>;

/** What was typed can't be: the process ends with 2. */
export function misuse(message: string, data: Record<string, unknown> = {}): BoughError {
  return new BoughError("invalid_argument", message, { data });
}

/** The person wants to stop; `next` says how to go on. */
export function stopIfAsked(signal: AbortSignal, next: string): void {
  if (signal.aborted) throw new BoughError("aborted", `Stopped. ${next}`);
}

/** A whole number given as an option. */
export function wholeNumber(text: string, option: string): number {
  if (!/^\d{1,15}$/.test(text)) throw misuse(`--${option} is a whole number, not "${text}".`);
  return Number(text);
}
