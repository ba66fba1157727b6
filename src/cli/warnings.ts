import { type Terminal, visible } from "./terminal.ts";

/** Warnings of ours become one line; those of Node, such as that its SQLite is new, are no business of who runs this. */
export function showWarnings(terminal: Terminal): void {
  process.removeAllListeners("warning");
  process.on("warning", ({ name, message }) => {
    if (name === "BoughWarning") terminal.note(`${terminal.paint("yellow", "warning")}: ${visible(message)}`);
  });
}
