import { moment } from "../../chat/text.ts";
import { openSessions } from "../../sessions/index.ts";
import type { CompactionInfo } from "../../wire/index.ts";
import { branchArgs, defineCommand, jsonArg, scopeOf, storeArg } from "../command.ts";
import { chooseStore, withStore } from "../store.ts";
import { count, printTable } from "../terminal.ts";

export const compactionsLs = defineCommand({
  args: { ...branchArgs, ...storeArg, ...jsonArg },
  examples: ["compactions ls user-123", "compactions ls user-123 main --json"],
  async run({ args, terminal }) {
    return withStore(chooseStore(args.store), {}, async (store) => {
      const compactions = await (await openSessions(store)).listCompactions(scopeOf(args));
      if (args.json) terminal.print(JSON.stringify({ compactions }));
      else if (compactions.length === 0) terminal.print("The branch has no compactions.");
      else printTable(terminal, ["ID", "SINCE", "KIND", "COVERS", "STRATEGY", "IN FORCE"], compactions.map(rowOf));
      return 0;
    });
  },
});

function rowOf(compaction: CompactionInfo): string[] {
  const { id, createdAt, retention, messages, cleared, strategy = "", inForce } = compaction;
  const covers = cleared === undefined ? count(messages, "message") : count(cleared, "output");
  return [id, moment(createdAt), retention, covers, strategy, inForce ? "yes" : "no"];
}
