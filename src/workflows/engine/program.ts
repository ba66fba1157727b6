// The program: what a run does with a turn that is an execution. It reads the input, chooses the code, and closes the turn with
// what that returns.

import { BoughError } from "../../base/errors.ts";
import { outputLimits, writeJson } from "../../base/json.ts";
import { type Fact, textOf, type UnknownFact } from "../../events/index.ts";
import { type ExecutionStamp, executionOf } from "../../runs/execution.ts";
import type { ActiveTurn } from "../../runs/turn/active-turn.ts";
import type { TurnFinish } from "../../runs/turn/loop.ts";
import type { Workflow } from "../port.ts";
import { Execution } from "./execution.ts";
import { CodeFlow } from "./flow.ts";
import { Places } from "./places.ts";
import { checkValue, needValue, ownValue } from "./values.ts";

/** What a turn keeps of the workflow that it executes. */
export function stampFor({ name, options, digest }: Workflow, executionId: string): ExecutionStamp {
  return { name, version: options.version ?? 1, digest, executionId };
}

export interface ProgramOptions {
  readonly napMs: number;
}

/** Works on a turn with the code of a workflow. */
export async function execute(turn: ActiveTurn, workflow: Workflow, { napMs }: ProgramOptions): Promise<TurnFinish> {
  const { open } = await turn.view();
  const stamp = executionOf(open?.metadata) ?? stampFor(workflow, turn.turnId);
  const { strict: isStrict = false } = workflow.options;
  const execution = new Execution({ turn, stamp, isStrict, napMs });
  const given = inputOf([...turn.earlier, ...turn.held.opening]);
  const places = new Places(execution, typeof given === "string" ? given : "");
  return execution.work(async () => {
    const input = await readInput(workflow, given, stamp);
    const flow = new CodeFlow({ execution, places, workflow, version: stamp.version, restart: () => {} });
    return finish(turn, workflow, await workflow.run(flow, input));
  });
}

/** The text of the turn's input; its parts where it has files. */
function inputOf(facts: readonly (Fact | UnknownFact)[]): unknown {
  const messages = facts.filter(
    (fact): fact is Fact<"message.added"> => fact.type === "message.added" && fact.source !== undefined,
  );
  const parts = messages.flatMap(({ content }) => (typeof content === "string" ? [] : content));
  const hasFiles = parts.some((part) => Object(part).type !== "text");
  return hasFiles ? structuredClone(parts) : messages.map((message) => textOf(message)).join("\n");
}

/** The input as it was given to `run`; text that came otherwise is taken as it is, or as JSON, whichever fits the schema. */
async function readInput(
  { name, options }: Workflow,
  given: unknown,
  { input: form }: ExecutionStamp,
): Promise<unknown> {
  const what = `The input of the workflow "${name}"`;
  if (form === "json") {
    return needValue(options.input, JSON.parse(given as string), { code: "invalid_argument", what });
  }
  const checked = await checkValue(options.input, given);
  if ("value" in checked) return checked.value;
  const parsed = parseJson(given);
  const again = parsed && (await checkValue(options.input, parsed.value));
  if (again && "value" in again) return again.value;
  const problem = again?.problem ?? checked.problem;
  throw new BoughError("invalid_argument", `${what} does not fit its schema: ${problem}.`, {
    data: { workflow: name },
  });
}

function parseJson(text: unknown): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(String(text)) };
  } catch {
    return undefined;
  }
}

/** The output as the turn's last message, and as the result of the run. */
async function finish(turn: ActiveTurn, { name, options }: Workflow, made: unknown): Promise<TurnFinish> {
  const what = `The output of the workflow "${name}"`;
  const output = ownValue(await needValue(options.output, made, { code: "output_invalid", what }), what);
  if (output === undefined || output === "") return { reason: "returned", output };
  const text = typeof output === "string" ? output : writeJson(output, what, outputLimits);
  return { reason: "returned", output, message: turn.draft({ role: "assistant", content: text }) };
}
