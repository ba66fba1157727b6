import { ask } from "../ask.ts";
import { defineCommand, jsonArg, storeArg, yesArg } from "../command.ts";
import { needSession } from "../copy/source.ts";
import { chooseStore, withStore } from "../store.ts";
import { count, toJson } from "../terminal.ts";

export const sessionsRm = defineCommand({
  args: {
    session: {
      type: "positional",
      valueHint: "SESSION",
      required: true,
      description: "the session's id; repeat for several",
    },
    ...yesArg,
    ...storeArg,
    ...jsonArg,
  },
  isVariadic: true,
  examples: ["sessions rm user-123", "sessions rm user-1 user-2 --yes"],
  async run({ args, words, terminal }) {
    const ids = [...new Set(words)];
    return withStore(chooseStore(args.store), {}, async (store) => {
      // If any session is missing, nothing is deleted.
      for (const id of ids) await needSession(store, id);
      if (!(await ask(`Permanently delete ${count(ids.length, "session")}?`, { terminal, isAgreed: args.yes })))
        return 1;
      for (const id of ids) await store.deleteSession(id);
      if (args.json) terminal.print(toJson({ removed: ids }));
      else terminal.print(`Deleted ${count(ids.length, "session")}.`);
      return 0;
    });
  },
});
