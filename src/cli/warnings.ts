import { visible } from "../chat/text.ts";
import type { Terminal } from "./terminal.ts";

/** Bough's warnings become one line. Node's own, such as that its SQLite is experimental, are not shown. */
export function showWarnings(terminal: Terminal): void {
  process.removeAllListeners("warning");
  process.on("warning", ({ name, message }) => {
    if (name === "BoughWarning") terminal.note(`${terminal.paint("yellow", "warning")}: ${visible(message)}`);
  });
}
