import type { Json } from "../../base/json.ts";
import { defineCommand, misuse } from "../command.ts";
import { executionOptions, executionWord, findExecution, withExecutions } from "../executions.ts";

export const workflowSignal = defineCommand({
  args: {
    ...executionWord,
    name: { type: "positional", valueHint: "NAME", required: true, description: "the signal's name" },
    payload: { type: "positional", valueHint: "JSON", required: false, description: "what it brings" },
    id: { type: "string", valueHint: "ID", description: "a signal counts once for each id (default: a new one)" },
    ...executionOptions,
  },
  examples: [
    "workflow signal case-7 paid",
    `workflow signal case-7 paid '{"amount":20}' --id payment-1`,
    "workflow signal case-7 paid --url http://127.0.0.1:4600",
  ],
  async run({ args, terminal }) {
    const { name, payload, id } = args;
    const signal = {
      name,
      ...(payload !== undefined && { payload: read(payload) }),
      ...(id !== undefined && { id }),
    };
    const signalId = await withExecutions(args, async (executions) => {
      const { ref, row } = await findExecution(executions, args);
      return executions.signal(ref, row, signal);
    });
    terminal.print(signalId);
    if (args.url === undefined) terminal.note("Sent. A process that runs the workflow goes on with the execution.");
    return 0;
  },
});

function read(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    throw misuse(`The payload is not JSON: ${text}. A text needs its quotes: '"text"'.`);
  }
}
