// Help screens: summary, usage, options, examples.

import type { ArgDef } from "citty";
import type { Command, Group } from "./command.ts";
import type { Terminal } from "./terminal.ts";

export function printGroupHelp(terminal: Terminal, path: readonly string[], group: Group): void {
  const name = ["bough", ...path].join(" ");
  const rows = Object.entries(group.commands).flatMap(([word, entry]): [string, string][] => {
    if (!("commands" in entry)) return [[word, entry.summary]];
    return Object.entries(entry.commands).map(([inner, { summary }]) => [`${word} ${inner}`, summary]);
  });
  terminal.print(`${terminal.paint("bold", name)}: ${group.summary}`);
  terminal.print(`\nUsage: ${name} COMMAND [OPTIONS]\n`);
  printRows(terminal, "Commands", rows);
  if (path.length === 0) {
    terminal.print("");
    printRows(terminal, "Stores", [
      ["./directory", "files"],
      ["sqlite:./bough.db", "a SQLite file"],
      ["postgres://…", "a PostgreSQL database"],
      ["redis://…", "a Redis server"],
    ]);
    terminal.print("");
    printRows(terminal, "Environment", [
      ["BOUGH_STORE", "the default of --store"],
      ["BOUGH_TOKEN", "the default of --token"],
      ["BOUGH_DEBUG", "if set, errors are printed with their stack"],
      ["NO_COLOR", "if set, no colours are used"],
    ]);
  }
  terminal.print(`\nRun ${name} COMMAND --help for details of a command.`);
}

export function printCommandHelp(
  terminal: Terminal,
  path: readonly string[],
  { summary, command }: { summary: string; command: Command },
): void {
  const name = ["bough", ...path].join(" ");
  const args = Object.entries(command.args);
  const positional = args.filter(([, arg]) => arg.type === "positional");
  const options = args.filter(([, arg]) => arg.type !== "positional");
  const dots = command.isVariadic ? "…" : "";
  const words = positional.map(([key, arg], i) => {
    const word = `${wordOf(key, arg)}${i === positional.length - 1 ? dots : ""}`;
    return arg.required === false ? `[${word}]` : word;
  });
  const needed = options.filter(([, arg]) => arg.required).map(([key, arg]) => optionOf(key, arg));
  terminal.print(`${terminal.paint("bold", name)}: ${summary}`);
  terminal.print(`\nUsage: ${[name, ...words, ...needed, "[OPTIONS]"].join(" ")}\n`);
  const row = (label: string, arg: ArgDef): [string, string] => [label, arg.description ?? ""];
  if (positional.length > 0) {
    printRows(
      terminal,
      "Arguments",
      positional.map(([key, arg]) => row(wordOf(key, arg), arg)),
    );
    terminal.print("");
  }
  printRows(terminal, "Options", [
    ...options.map(([key, arg]) => row(optionOf(key, arg), arg)),
    ["--help", "show this help"],
  ]);
  terminal.print(`\n${terminal.paint("bold", "Examples:")}`);
  for (const example of command.examples) terminal.print(`  bough ${example}`);
}

function wordOf(key: string, arg: ArgDef): string {
  return arg.valueHint ?? key.toUpperCase();
}

function optionOf(key: string, arg: ArgDef): string {
  const alias = "alias" in arg && arg.alias !== undefined ? `-${arg.alias}, ` : "";
  return `${alias}--${key}${arg.type === "boolean" ? "" : ` ${wordOf(key, arg)}`}`;
}

function printRows(terminal: Terminal, title: string, rows: readonly [string, string][]): void {
  const width = Math.max(...rows.map(([label]) => label.length));
  terminal.print(terminal.paint("bold", `${title}:`));
  for (const [label, text] of rows) terminal.print(`  ${label.padEnd(width)}  ${text}`);
}
