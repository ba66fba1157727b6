import { visible } from "../../chat/text.ts";
import { openSessions } from "../../sessions/index.ts";
import { ask } from "../ask.ts";
import { defineCommand, jsonArg, storeArg, yesArg } from "../command.ts";
import { duration } from "../duration.ts";
import { chooseStore, withStore } from "../store.ts";
import { count, toJson } from "../terminal.ts";

export const sessionsPrune = defineCommand({
  args: {
    "older-than": {
      type: "string",
      valueHint: "TIME",
      required: true,
      description: "inactive for at least this long, such as 45s, 90m, 12h, 30d or 2w",
    },
    "dry-run": { type: "boolean", description: "only list the sessions" },
    ...yesArg,
    ...storeArg,
    ...jsonArg,
  },
  examples: ["sessions prune --older-than 30d --dry-run", "sessions prune --older-than 12w --yes"],
  async run({ args, terminal }) {
    const olderThan = duration(args["older-than"], "older-than");
    return withStore(chooseStore(args.store), {}, async (store) => {
      const sessions = await openSessions(store);
      const found = await sessions.deleteInactiveSessions({ olderThan, dryRun: true });
      if (args["dry-run"] || found.count === 0) {
        if (args.json) terminal.print(toJson({ dryRun: args["dry-run"] === true, ...found }));
        else for (const id of found.sessionIds) terminal.print(visible(id));
        if (!args.json) terminal.note(`${count(found.count, "session")} would be deleted.`);
        return 0;
      }
      if (!(await ask(`Permanently delete ${count(found.count, "session")}?`, { terminal, isAgreed: args.yes })))
        return 1;
      const removed = await sessions.deleteInactiveSessions({ olderThan });
      if (args.json) terminal.print(toJson({ dryRun: false, ...removed }));
      else terminal.print(`Deleted ${count(removed.count, "session")}.`);
      return 0;
    });
  },
});
