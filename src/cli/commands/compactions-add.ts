import { visible } from "../../chat/text.ts";
import { keepTurns, openSessions } from "../../sessions/index.ts";
import { branchArgs, defineCommand, jsonArg, scopeOf, storeArg, wholeNumber } from "../command.ts";
import { chooseStore, withStore } from "../store.ts";
import { count } from "../terminal.ts";

export const compactionsAdd = defineCommand({
  args: {
    ...branchArgs,
    keep: { type: "string", valueHint: "N", description: "how many of the newest turns stay (default 10)" },
    hard: { type: "boolean", description: "for people too, not only for models" },
    ...storeArg,
    ...jsonArg,
  },
  examples: ["compactions add user-123 --keep 20", "compactions add user-123 main --keep 5 --hard"],
  async run({ args, terminal }) {
    return withStore(chooseStore(args.store), {}, async (store) => {
      const compaction = await (await openSessions(store)).compact(scopeOf(args), {
        strategy: keepTurns(args.keep === undefined ? 10 : wholeNumber(args.keep, "keep")),
        retention: args.hard ? "hard" : "soft",
      });
      const { id, messages } = compaction;
      if (args.json) terminal.print(JSON.stringify({ compaction }));
      else terminal.print(`Compacted ${count(messages, "message")} as ${visible(id)}; the log keeps them.`);
      return 0;
    });
  },
});
