import { BoughError } from "../base/errors.ts";
import { misuse } from "./command.ts";
import type { Terminal } from "./terminal.ts";

/** Asks before something is removed; where nobody can be asked, agreement has to be given beforehand. */
export async function ask(
  question: string,
  { terminal, isAgreed }: { terminal: Terminal; isAgreed: boolean | undefined },
): Promise<boolean> {
  if (isAgreed) return true;
  if (!terminal.isInteractive) throw misuse(`${question} Say --yes: there is nobody to ask.`);
  const { confirm, isCancel } = await import("@clack/prompts");
  const answer = await confirm({ message: question, initialValue: false, output: process.stderr });
  if (isCancel(answer)) throw new BoughError("aborted", "Nothing was removed.");
  if (!answer) terminal.note("Nothing was removed.");
  return answer;
}
