// Where the command writes: results to stdout, everything else to stderr, so that a pipe carries results only.

import { styleText } from "node:util";

/**
 * Controls of C0, DEL and C1; directions (U+061C, U+200E, U+200F, U+202A–202E, U+2066–2069); spaces without width (U+200B,
 * U+FEFF); separators of lines (U+2028, U+2029).
 */
const steering =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

export type Style = "bold" | "dim" | "red" | "yellow" | "green";

export interface Terminal {
  /** A line of the result. */
  print(line: string): void;
  /** A part of the result that may be half a line. */
  write(text: string): void;
  /** A line for the person who waits: progress, warnings, errors. */
  note(line: string): void;
  /** Writes over the last line that was written this way; an empty text takes it away. Only for `isInteractive`. */
  overwrite(text: string): void;
  paint(style: Style, text: string): string;
  /** Whether a person sees what is noted and can be asked. */
  readonly isInteractive: boolean;
  readonly columns: number;
}

export function processTerminal(): Terminal {
  const { stdout, stderr, stdin, env } = process;
  // Whoever reads us may stop reading, as `head` does; that is no failure.
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
    // A terminal that does not know its width says 0.
    columns: stdout.columns || 100,
  };
}

/** Text from a store as it may be shown: what would steer the terminal, or hide in it, is written out. */
export function visible(text: string): string {
  return text.replace(steering, writeOut);
}

/** A value as one line of JSON. What would steer a terminal is escaped, so that a reader gets the same value. */
export function toJson(value: unknown): string {
  return visible(JSON.stringify(value));
}

function writeOut(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

export function shorten(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(width - 1, 0))}…`;
}

/** Columns under their headings; numbers to the right. The last column is cut at the edge of the terminal. */
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

/** A moment as people read it, in UTC. */
export function moment(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19).replace("T", " ")}Z`;
}

/** "1 session", "2 sessions", "12,000 facts". */
export function count(many: number, one: string): string {
  const plural = one.endsWith("ch") ? `${one}es` : `${one}s`;
  return `${many.toLocaleString("en-US")} ${many === 1 ? one : plural}`;
}
