import { moment } from "../../chat/text.ts";
import { openSessions } from "../../sessions/index.ts";
import { branchArgs, defineCommand, jsonArg, scopeOf, storeArg } from "../command.ts";
import { chooseStore, withStore } from "../store.ts";
import { printTable } from "../terminal.ts";

export const tasksLs = defineCommand({
  args: { ...branchArgs, ...storeArg, ...jsonArg },
  examples: ["tasks ls user-123", "tasks ls user-123 main --json"],
  async run({ args, terminal }) {
    return withStore(chooseStore(args.store), {}, async (store) => {
      const tasks = await (await openSessions(store)).listTasks(scopeOf(args));
      if (args.json) terminal.print(JSON.stringify({ tasks }));
      else if (tasks.length === 0) terminal.print("No background task goes on.");
      else {
        const rows = tasks.map(({ taskId, name, status, startedAt, child }) => {
          return [taskId, name, status, moment(startedAt), child?.branchId ?? ""];
        });
        printTable(terminal, ["ID", "NAME", "STATUS", "SINCE", "BRANCH"], rows);
      }
      return 0;
    });
  },
});
