import { defineCommand, jsonArg, misuse, stopIfAsked } from "../command.ts";
import { type CopyReport, copyStore } from "../copy/copy-store.ts";
import { Progress } from "../copy/progress.ts";
import { ReplayClock } from "../copy/replay-clock.ts";
import { placeOf, showUrl } from "../place.ts";
import { withStore } from "../store.ts";
import { count, type Terminal, toJson } from "../terminal.ts";

export const storeCopy = defineCommand({
  args: {
    from: { type: "string", valueHint: "URL", required: true, description: "the store to copy from; never changed" },
    to: {
      type: "string",
      valueHint: "URL",
      required: true,
      description: "the store to copy to; created if necessary",
    },
    sessions: { type: "string", valueHint: "ID,…", description: "only these sessions (default: all)" },
    ...jsonArg,
  },
  examples: [
    "store copy --from sqlite:./bough.db --to postgres://localhost/app",
    "store copy --from ./sessions --to sqlite:./bough.db --sessions user-1,user-2",
  ],
  async run({ args, terminal, signal }) {
    const { from, to } = args;
    if (sameStore(from, to)) throw misuse("--from and --to name the same store.");
    const sessionIds = args.sessions === undefined ? undefined : idsOf(args.sessions);
    const clock = new ReplayClock();
    const progress = new Progress(terminal);
    const pause = () => stopIfAsked(signal, "Run the same command again to continue.");
    try {
      const report = await withStore(from, {}, (source) =>
        withStore(to, { create: true, clock }, (store) =>
          copyStore(
            source,
            { store, clock },
            {
              sessionIds,
              pause,
              onProgress: (step, done, of) => progress.show(step, done, of),
            },
          ),
        ),
      );
      progress.end();
      if (args.json) terminal.print(toJson({ from: showUrl(from), to: showUrl(to), verified: true, ...report }));
      else printReport(terminal, report);
    } finally {
      progress.end();
    }
    return 0;
  },
});

function printReport(terminal: Terminal, report: CopyReport): void {
  const { sessions, copied, otherTimes } = report;
  const sizes = [
    count(sessions, "session"),
    count(report.branches, "branch"),
    count(report.facts, "fact"),
    count(report.checkpoints, "checkpoint"),
    count(report.contents, "content"),
  ];
  terminal.print(`Copied and verified: ${sizes.join(", ")}.`);
  if (copied < sessions) terminal.print(`${count(sessions - copied, "session")} already existed in the target.`);
  if (otherTimes > 0)
    terminal.print(`The time of last activity could not be kept for ${count(otherTimes, "session")}.`);
}

function idsOf(list: string): string[] {
  const ids = [...new Set(list.split(",").map((id) => id.trim()))].filter((id) => id !== "");
  if (ids.length === 0) throw misuse("--sessions names no session.");
  return ids;
}

function sameStore(from: string, to: string): boolean {
  const [one, other] = [placeOf(from), placeOf(to)];
  return one && other ? one.path === other.path : from === to;
}
