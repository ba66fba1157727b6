import { once } from "node:events";
import { createReadStream } from "node:fs";
import { BoughError } from "../../base/errors.ts";
import { defineCommand, jsonArg, stopIfAsked, storeArg } from "../command.ts";
import { type CopyReport, copySessions } from "../copy/copy-store.ts";
import { importSessions } from "../copy/import.ts";
import { linesOf } from "../copy/lines.ts";
import { ReplayClock } from "../copy/replay-clock.ts";
import { chooseStore, withStore } from "../store.ts";
import { count, toJson } from "../terminal.ts";

export const sessionsImport = defineCommand({
  args: {
    file: {
      type: "positional",
      valueHint: "FILE",
      required: true,
      description: "what export has written; - for stdin",
    },
    ...storeArg,
    ...jsonArg,
  },
  examples: ["sessions import two.jsonl --store sqlite:./bough.db", "sessions import - < user-123.jsonl"],
  async run({ args, terminal, signal }) {
    const pause = () => stopIfAsked(signal, "Run the same command again to continue.");
    const clock = new ReplayClock();
    const reports: CopyReport[] = [];
    const input = await openInput(args.file);
    try {
      await withStore(chooseStore(args.store), { create: true, clock }, async (store) => {
        for await (const session of importSessions(linesOf(input.setEncoding("utf8")))) {
          const ids = [session.record.id];
          reports.push(await copySessions(session, { store, clock }, ids, { pause, onProgress: () => {} }));
        }
      });
    } finally {
      input.destroy();
    }
    const facts = reports.reduce((sum, report) => sum + report.facts, 0);
    const copied = reports.reduce((sum, report) => sum + report.copied, 0);
    if (args.json) terminal.print(toJson({ sessions: reports.length, imported: copied, facts, verified: true }));
    else terminal.print(`Imported and verified: ${count(reports.length, "session")}, ${count(facts, "fact")}.`);
    return 0;
  },
});

async function openInput(file: string) {
  if (file === "-") return process.stdin;
  const input = createReadStream(file);
  try {
    await once(input, "open");
    return input;
  } catch (cause) {
    throw new BoughError("invalid_argument", `"${file}" can't be read: ${(cause as Error).message}.`, { cause });
  }
}
