import { BoughError } from "../base/errors.ts";
import { misuse } from "./command.ts";
import type { Terminal } from "./terminal.ts";

/** Asks for confirmation before something is deleted. Without a terminal, `isAgreed` (--yes) is required. */
export async function ask(
  question: string,
  { terminal, isAgreed }: { terminal: Terminal; isAgreed: boolean | undefined },
): Promise<boolean> {
  if (isAgreed) return true;
  if (!terminal.isInteractive) throw misuse(`${question} Pass --yes to confirm: there is no terminal to ask on.`);
  const { confirm, isCancel } = await import("@clack/prompts");
  const answer = await confirm({ message: question, initialValue: false, output: process.stderr });
  if (isCancel(answer)) throw new BoughError("aborted", "Nothing was deleted.");
  if (!answer) terminal.note("Nothing was deleted.");
  return answer;
}
