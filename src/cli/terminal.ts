// The command's output: results go to stdout, everything else to stderr, so that a pipe carries only results.

import { styleText } from "node:util";
import { shorten, visible } from "../chat/text.ts";

export type Style = "bold" | "dim" | "red" | "yellow" | "green";

export interface Terminal {
  /** Prints a line of the result. */
  print(line: string): void;
  /** Prints a part of the result, without a line end. */
  write(text: string): void;
  /** Prints a line for the user: progress, warnings, errors. */
  note(line: string): void;
  /** Overwrites the last line printed this way; an empty text removes it. Only if `isInteractive`. */
  overwrite(text: string): void;
  paint(style: Style, text: string): string;
  /** Whether the user sees notes and can answer questions. */
  readonly isInteractive: boolean;
  readonly columns: number;
}

export function processTerminal(): Terminal {
  const { stdout, stderr, stdin, env } = process;
  // The reader of a pipe may stop early, as `head` does; that is not a failure.
  stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(0);
    throw error;
  });
  const isColourful = stdout.isTTY === true && !env.NO_COLOR && env.TERM !== "dumb";
  return {
    print: (line) => void stdout.write(`${line}\n`),
    write: (text) => void stdout.write(text),
    note: (line) => void stderr.write(`${line}\n`),
    overwrite: (text) => void stderr.write(`\r\u001b[2K${text}`),
    paint: (style, text) => (isColourful ? styleText(style, text) : text),
    isInteractive: stderr.isTTY === true && stdin.isTTY === true && env.TERM !== "dumb",
    // A terminal that does not know its width reports 0.
    columns: stdout.columns || 100,
  };
}

/** A value as one line of JSON. Terminal control characters are escaped; parsers get the same value. */
export function toJson(value: unknown): string {
  return visible(JSON.stringify(value));
}

/** A table with headings; numbers are right-aligned. The last column is cut at the edge of the terminal. */
export function printTable(
  terminal: Terminal,
  headings: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): void {
  const cells = rows.map((row) => row.map((cell) => visible(String(cell))));
  const widths = headings.map((heading, i) => Math.max(heading.length, ...cells.map((row) => row[i]!.length)));
  const isNumber = headings.map((_, i) => rows.length > 0 && rows.every((row) => typeof row[i] === "number"));
  const last = headings.length - 1;
  const left = widths.slice(0, last).reduce((sum, width) => sum + width + 2, 0);
  const lineOf = (row: readonly string[]) =>
    row
      .map((cell, i) => {
        if (isNumber[i]) return cell.padStart(widths[i]!);
        return i === last ? shorten(cell, Math.max(terminal.columns - left, 20)) : cell.padEnd(widths[i]!);
      })
      .join("  ")
      .trimEnd();
  terminal.print(terminal.paint("bold", lineOf(headings)));
  for (const row of cells) terminal.print(lineOf(row));
}

/** "1 session", "2 sessions", "12,000 facts". */
export function count(many: number, one: string): string {
  const plural = one.endsWith("ch") ? `${one}es` : `${one}s`;
  return `${many.toLocaleString("en-US")} ${many === 1 ? one : plural}`;
}
