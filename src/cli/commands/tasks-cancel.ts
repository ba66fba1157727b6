import { cancelTask, interruptRun } from "../../runs/index.ts";
import { settleTask } from "../../runs/tasks/settle.ts";
import { resolveBranch } from "../../sessions/branches.ts";
import { createContext } from "../../sessions/context.ts";
import { defineCommand, storeArg } from "../command.ts";
import { chooseStore, withStore } from "../store.ts";

export const tasksCancel = defineCommand({
  args: {
    session: { type: "positional", valueHint: "SESSION", required: true, description: "the session's id" },
    task: {
      type: "positional",
      valueHint: "TASK",
      required: true,
      description: "the task's id, as listed by `tasks ls`",
    },
    branch: { type: "string", valueHint: "BRANCH", description: "the branch, if the session has several" },
    ...storeArg,
  },
  examples: ["tasks cancel user-123 task-0123456789abcdef"],
  async run({ args, terminal }) {
    const { session: sessionId, task, branch } = args;
    await withStore(chooseStore(args.store), {}, async (store) => {
      const context = createContext(store, {});
      const ref = await resolveBranch(context, branch === undefined ? { sessionId } : { sessionId, branchId: branch });
      await cancelTask(context, ref, task, {
        endFunction: () => false,
        async callOff({ sessionId, branchId }, reason) {
          await interruptRun(context, { sessionId, branchId }, { reason });
        },
      });
      await settleTask(context, ref, task, () => undefined);
    });
    terminal.note("Cancelled. A process that works on it stops as soon as it reads that.");
    return 0;
  },
});
