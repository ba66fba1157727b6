import { moment } from "../../chat/text.ts";
import type { ExecutionStep } from "../../workflows/index.ts";
import { defineCommand, jsonArg } from "../command.ts";
import { executionOptions, executionWord, findExecution, stateOf, withExecutions } from "../executions.ts";
import { printTable, type Terminal, toJson } from "../terminal.ts";

export const workflowShow = defineCommand({
  args: { ...executionWord, ...executionOptions, ...jsonArg },
  examples: ["workflow show case-7", "workflow show case-7 --workflow order --json"],
  async run({ args, terminal }) {
    const shown = await withExecutions(args, async (executions) => {
      const { ref, row } = await findExecution(executions, args);
      const steps = await executions.steps(ref, row);
      const wakesAt = row.asleep ? await executions.wakesAt(ref, row) : undefined;
      return { ...ref, state: stateOf(row), ...(wakesAt !== undefined && { wakesAt }), steps };
    });
    if (args.json) terminal.print(toJson(shown));
    else print(terminal, shown);
    return 0;
  },
});

interface Shown {
  readonly sessionId: string;
  readonly branchId: string;
  readonly state: string;
  readonly wakesAt?: number;
  readonly steps: readonly ExecutionStep[];
}

function print(terminal: Terminal, { sessionId, branchId, state, wakesAt, steps }: Shown): void {
  const till = wakesAt === undefined ? "until it gets a signal or an answer" : `until ${moment(wakesAt)}`;
  terminal.note(`${sessionId}, branch ${branchId}: ${state}${state === "asleep" ? `, ${till}` : ""}`);
  if (steps.length === 0) {
    terminal.note("No step is recorded.");
    return;
  }
  const rows = steps.map((step) => {
    const { key, kind = "step", status, tries, ms, child } = step;
    return [
      key,
      kind,
      status,
      tries ?? "",
      ms === undefined ? "" : `${ms} ms`,
      String(child?.branchId ?? ""),
      noteOn(step),
    ];
  });
  printTable(terminal, ["STEP", "KIND", "STATE", "TRIES", "TIME", "BRANCH", "NOTE"], rows);
}

/** What a step waits for, or how it ended. */
function noteOn({ status, kind, until, interactionId, error, why }: ExecutionStep): string {
  if (error) return String(error.message ?? "");
  if (status !== "started") return why ?? "";
  const till = until === undefined ? "" : ` until ${moment(until)}`;
  if (interactionId !== undefined) return `waits for the answer to ${interactionId}${till}`;
  if (kind === "wait") return `waits for a signal${till}`;
  return till === "" ? "" : `sleeps${till}`;
}
