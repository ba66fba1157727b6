import { defineCommand, jsonArg, storeWord } from "../command.ts";
import { showUrl } from "../place.ts";
import { chooseStore, withStore } from "../store.ts";
import { count, printTable, toJson } from "../terminal.ts";

/** Repaired problems are reported, but don't count as a failure. */
const settled = new Set(["repaired"]);

export const storeCheck = defineCommand({
  args: {
    ...storeWord,
    ...jsonArg,
  },
  examples: ["store check sqlite:./bough.db", "store check ./sessions --json"],
  async run({ args, terminal }) {
    const url = chooseStore(args.url, "the store's URL");
    const report = await withStore(url, {}, (store) => store.maintain());
    const open = report.problems.filter(({ code }) => !settled.has(code));
    if (args.json) {
      terminal.print(toJson({ store: showUrl(url), ok: open.length === 0, ...report }));
    } else {
      const { sessions, branches, events, problems } = report;
      const sizes = [count(sessions, "session"), count(branches, "branch"), count(events, "fact")];
      const found = problems.length === 0 ? "no problems" : count(problems.length, "problem");
      terminal.print(`${sizes.join(", ")}: ${found}`);
      if (problems.length > 0) {
        const rows = problems.map((it) => [it.code, it.sessionId ?? "", it.branchId ?? "", it.detail]);
        terminal.print("");
        printTable(terminal, ["PROBLEM", "SESSION", "BRANCH", "DETAIL"], rows);
      }
    }
    return open.length === 0 ? 0 : 1;
  },
});
