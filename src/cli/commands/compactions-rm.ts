import { visible } from "../../chat/text.ts";
import { openSessions } from "../../sessions/index.ts";
import { branchArgs, defineCommand, jsonArg, scopeOf, storeArg } from "../command.ts";
import { chooseStore, withStore } from "../store.ts";

export const compactionsRm = defineCommand({
  args: {
    ...branchArgs,
    id: { type: "string", valueHint: "ID", description: "the compaction (default: the newest in force)" },
    ...storeArg,
    ...jsonArg,
  },
  examples: ["compactions rm user-123", "compactions rm user-123 main --id 01ABC"],
  async run({ args, terminal }) {
    return withStore(chooseStore(args.store), {}, async (store) => {
      const compaction = await (await openSessions(store)).uncompact(scopeOf(args), args.id);
      if (args.json) terminal.print(JSON.stringify({ compaction }));
      else terminal.print(`Took back ${visible(compaction.id)}.`);
      return 0;
    });
  },
});
