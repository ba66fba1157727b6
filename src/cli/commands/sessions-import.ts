import { once } from "node:events";
import { createReadStream } from "node:fs";
import { BoughError } from "../../base/errors.ts";
import { defineCommand, jsonArg, stopIfAsked, storeArg } from "../command.ts";
import { type CopyReport, copySessions } from "../copy/copy-store.ts";
import { type Distrusted, distrust, nothingDistrusted } from "../copy/distrust.ts";
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
      description: "the exported file; - for stdin",
    },
    trust: {
      type: "boolean",
      description: "keep open turns, answers and remembered permissions",
    },
    "allow-namespaced": {
      type: "boolean",
      description: 'accept ids that begin with "~" (a server\'s tenants and agents)',
    },
    ...storeArg,
    ...jsonArg,
  },
  examples: [
    "sessions import two.jsonl --store sqlite:./bough.db",
    "sessions import - < user-123.jsonl",
    "sessions import my-own.jsonl --trust",
  ],
  async run({ args, terminal, signal }) {
    const pause = () => stopIfAsked(signal, "Run the same command again to continue.");
    const clock = new ReplayClock();
    const reports: CopyReport[] = [];
    const distrusted = nothingDistrusted();
    const allowNamespaced = args["allow-namespaced"] === true;
    const input = await openInput(args.file);
    try {
      await withStore(chooseStore(args.store), { create: true, clock }, async (store) => {
        for await (const session of importSessions(linesOf(input.setEncoding("utf8")), { allowNamespaced })) {
          if (!args.trust) await distrust(session, distrusted);
          const ids = [session.record.id];
          reports.push(await copySessions(session, { store, clock }, ids, { pause, onProgress: () => {} }));
        }
      });
    } finally {
      input.destroy();
    }
    const facts = reports.reduce((sum, report) => sum + report.facts, 0);
    const copied = reports.reduce((sum, report) => sum + report.copied, 0);
    if (args.json) {
      const report = { sessions: reports.length, imported: copied, facts, verified: true };
      terminal.print(toJson({ ...report, trusted: args.trust === true, ...distrusted }));
      return 0;
    }
    terminal.print(`Imported and verified: ${count(reports.length, "session")}, ${count(facts, "fact")}.`);
    for (const line of sentencesOf(distrusted)) terminal.print(line);
    return 0;
  },
});

/** What an import without --trust changed. */
function sentencesOf({
  closedTurns,
  voidedAnswers,
  withdrawnInputs,
  endedTasks,
  droppedPermissions,
}: Distrusted): string[] {
  const lines: string[] = [];
  if (closedTurns > 0) {
    const answers = voidedAnswers > 0 ? `, with ${count(voidedAnswers, "answer")} that no call had used` : "";
    lines.push(`Closed ${count(closedTurns, "open turn")}${answers}.`);
  }
  if (withdrawnInputs > 0) lines.push(`Withdrew ${count(withdrawnInputs, "queued input")}.`);
  if (endedTasks > 0) lines.push(`Ended ${count(endedTasks, "background task")}.`);
  if (droppedPermissions > 0) lines.push(`Dropped ${count(droppedPermissions, "remembered permission")}.`);
  if (lines.length > 0)
    lines.push("If the file is your own, delete the session and import it again with --trust to keep these.");
  return lines;
}

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
