// Runs the command given by the arguments. Exit codes: 0, 1 for a failure, 2 for wrong arguments, 130 after Ctrl-C.

import { inspect } from "node:util";
import { parseArgs } from "citty";
import { BoughError } from "../base/errors.ts";
import { redactSecrets } from "../base/redact.ts";
import { visible } from "../chat/text.ts";
import { type Command, type Entry, misuse, type Surroundings } from "./command.ts";
import { root } from "./commands.ts";
import { printCommandHelp, printGroupHelp } from "./help.ts";
import { interruptedCode } from "./interrupt.ts";
import { toJson } from "./terminal.ts";
import { packageVersion } from "./version.ts";

export async function runCli(argv: readonly string[], surroundings: Surroundings): Promise<number> {
  try {
    return await dispatch(argv, surroundings);
  } catch (error) {
    return explain(error, argv.includes("--json"), surroundings);
  }
}

async function dispatch(argv: readonly string[], surroundings: Surroundings): Promise<number> {
  const { terminal } = surroundings;
  if (argv.length === 1 && ["--version", "-v", "version"].includes(argv[0]!)) {
    terminal.print(packageVersion());
    return 0;
  }
  const { path, entry, rest } = find(argv[0] === "help" ? [...argv.slice(1), "--help"] : argv);
  const wantsHelp = beforeDashes(rest).some((word) => word === "--help" || word === "-h");
  if ("commands" in entry) {
    if (wantsHelp || (path.length === 0 && rest.length === 0)) {
      printGroupHelp(terminal, path, entry);
      return 0;
    }
    throw unknownCommand(path, rest[0], Object.keys(entry.commands));
  }
  const command = await entry.load();
  if (wantsHelp) {
    printCommandHelp(terminal, path, { summary: entry.summary, command });
    return 0;
  }
  const args = parse(command, rest, path);
  return (await command.run({ ...surroundings, args, words: args._ })) ?? 0;
}

/** Walks the table as far as the arguments name an entry. */
function find(argv: readonly string[]): { path: string[]; entry: Entry; rest: string[] } {
  const path: string[] = [];
  let entry: Entry = root;
  for (const word of argv) {
    if (!("commands" in entry) || !Object.hasOwn(entry.commands, word)) break;
    entry = entry.commands[word]!;
    path.push(word);
  }
  return { path, entry, rest: argv.slice(path.length) };
}

function unknownCommand(path: readonly string[], word: string | undefined, known: readonly string[]): BoughError {
  const name = ["bough", ...path].join(" ");
  if (word === undefined) return misuse(`${name} needs a command: ${known.join(", ")}.`);
  if (word.startsWith("-"))
    return misuse(`Unknown option: ${visible(word)}. Options come after the command; see ${name} --help.`);
  return misuse(`Unknown command: ${name} ${visible(word)}. Commands: ${known.join(", ")}.`);
}

/** Parses the arguments. Unknown ones are refused, not ignored. */
function parse(command: Command, rest: readonly string[], path: readonly string[]) {
  const help = `See bough ${path.join(" ")} --help.`;
  // Required arguments are checked here, since the parser's own messages differ in style.
  const loose = Object.fromEntries(
    Object.entries(command.args).map(([key, arg]) => [key, { ...arg, required: false }]),
  );
  const args = parseArgs([...rest], loose);
  const positional = Object.entries(command.args).filter(([, arg]) => arg.type === "positional");
  const known = new Set(["_", ...Object.entries(command.args).flatMap(([key, arg]) => namesOf(key, arg))]);
  const unknown = Object.keys(args).find((key) => !known.has(key));
  if (unknown !== undefined)
    throw misuse(`Unknown option: ${unknown.length === 1 ? "-" : "--"}${visible(unknown)}. ${help}`);
  if (args._.length > positional.length && !command.isVariadic) {
    throw misuse(`Unexpected argument: "${visible(args._[positional.length]!)}". ${help}`);
  }
  for (const [key, arg] of Object.entries(command.args)) {
    const isPositional = arg.type === "positional";
    const isNeeded = isPositional ? arg.required !== false : arg.required === true;
    const name = isPositional ? (arg.valueHint ?? key.toUpperCase()) : `--${key}`;
    if (isNeeded && args[key] === undefined) throw misuse(`${name} is missing. ${help}`);
    if (arg.type !== "boolean" && args[key] === "") throw misuse(`${name} needs a value. ${help}`);
  }
  return args;
}

/** An option is also known by its alias, and the parser adds `olderThan` to `older-than`. */
function namesOf(key: string, arg: Command["args"][string]): string[] {
  const alias = "alias" in arg && arg.alias !== undefined ? [arg.alias].flat() : [];
  return [key, key.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase()), ...alias];
}

function beforeDashes(words: readonly string[]): readonly string[] {
  const end = words.indexOf("--");
  return end === -1 ? words : words.slice(0, end);
}

function explain(error: unknown, isJson: boolean, { terminal, signal }: Surroundings): number {
  const known = BoughError.is(error) ? error : undefined;
  const message = redactSecrets(error instanceof Error ? error.message : String(error));
  const isAborted = known?.code === "aborted" || (signal.aborted && known === undefined);
  if (isJson) {
    terminal.note(toJson({ error: { code: known?.code ?? "unexpected", message, ...dataOf(known) } }));
  } else if (isAborted) {
    terminal.note(visible(message));
  } else {
    terminal.note(`${terminal.paint("red", "error")}: ${visible(message)}${reference(known)}`);
  }
  if (process.env.BOUGH_DEBUG) terminal.note(redactSecrets(inspect(error)));
  if (isAborted) return interruptedCode;
  return known?.code === "invalid_argument" ? 2 : 1;
}

function dataOf(error: BoughError | undefined): { data?: Readonly<Record<string, unknown>> } {
  if (!error || Object.keys(error.data).length === 0) return {};
  // String by string: in the serialised document, the end of a URL could not be recognised.
  const redact = (_: string, value: unknown) => (typeof value === "string" ? redactSecrets(value) : value);
  return { data: JSON.parse(JSON.stringify(error.data, redact)) };
}

/** The error's code, or how to find an unexpected error's cause. */
function reference(error: BoughError | undefined): string {
  if (!error) return " (unexpected; BOUGH_DEBUG=1 shows where)";
  return error.code === "invalid_argument" ? "" : ` (${error.code})`;
}
