import { BoughError } from "../../base/errors.ts";
import { moment } from "../../chat/text.ts";
import { mainBranch } from "../../sessions/session.ts";
import { defineCommand, jsonArg, misuse, wholeNumber } from "../command.ts";
import { type Executions, executionPlace, stampedWith, stateOf, withExecutions } from "../executions.ts";
import { printTable, toJson } from "../terminal.ts";

export const workflowLs = defineCommand({
  args: {
    workflow: { type: "string", valueHint: "NAME", description: "only executions of this workflow" },
    limit: { type: "string", valueHint: "N", default: "50", description: "how many at most (default 50)" },
    cursor: { type: "string", valueHint: "C", description: "continue after an earlier page" },
    ...executionPlace,
    ...jsonArg,
  },
  examples: ["workflow ls", "workflow ls --workflow order --json", "workflow ls --url http://127.0.0.1:4600"],
  async run({ args, terminal }) {
    const limit = wholeNumber(args.limit, "limit");
    if (limit === 0) throw misuse("--limit must be an integer ≥ 1.");
    const { workflow, cursor } = args;
    const query = { metadata: stampedWith({ workflow }), limit, ...(cursor !== undefined && { cursor }) };
    const page = await withExecutions(args, (executions) => listed(executions, query));
    if (args.json) {
      terminal.print(toJson(page));
      return 0;
    }
    if (page.executions.length === 0) terminal.note("No executions.");
    else {
      const rows = page.executions.map((each) => {
        return [
          each.executionId,
          each.workflow,
          each.state,
          moment(each.lastActivity),
          moment(each.createdAt),
          each.sessionId,
        ];
      });
      printTable(terminal, ["EXECUTION", "WORKFLOW", "STATE", "LAST ACTIVITY", "CREATED", "SESSION"], rows);
    }
    if (page.cursor !== undefined) terminal.note(`More: add --cursor ${page.cursor}`);
    return 0;
  },
});

const readAtOnce = 8;

/** A page of executions. Only rows are read: no branch is loaded. */
async function listed(executions: Executions, query: Parameters<Executions["list"]>[0]) {
  const { sessions, cursor } = await executions.list(query);
  const found = [];
  for (let i = 0; i < sessions.length; i += readAtOnce) {
    const some = sessions.slice(i, i + readAtOnce).map(async ({ id: sessionId, metadata, createdAt, lastActivity }) => {
      const row = await executions.row({ sessionId, branchId: mainBranch }).catch(unlessGone);
      if (!row) return [];
      const { workflowExecutionId, workflowName } = metadata;
      const stamps = { executionId: String(workflowExecutionId), workflow: String(workflowName) };
      return [{ ...stamps, state: stateOf(row), sessionId, createdAt, lastActivity }];
    });
    found.push(...(await Promise.all(some)).flat());
  }
  return { executions: found, ...(cursor !== undefined && { cursor }) };
}

/** What was deleted since it was listed is left out. */
function unlessGone(error: unknown): undefined {
  if (!BoughError.is(error, "session_not_found") && !BoughError.is(error, "branch_not_found")) throw error;
}
