// The program: what a run does with a turn that is an execution. It reads the input, chooses the code, and closes the turn with
// what that returns.

import { BoughError } from "../../base/errors.ts";
import { outputLimits, writeJson } from "../../base/json.ts";
import { messageAdded, signalReceived, turnStarted } from "../../events/drafts.ts";
import { type Draft, type Fact, textOf, type UnknownFact } from "../../events/index.ts";
import type { OpenTurn } from "../../projection/index.ts";
import { type ExecutionStamp, executionOf } from "../../runs/execution.ts";
import type { ActiveTurn } from "../../runs/turn/active-turn.ts";
import type { TurnFinish } from "../../runs/turn/loop.ts";
import type { Workflow } from "../port.ts";
import { Execution, Restart } from "./execution.ts";
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
export async function execute(turn: ActiveTurn, current: Workflow, { napMs }: ProgramOptions): Promise<TurnFinish> {
  const { open } = await turn.view();
  const stamp = executionOf(open?.metadata) ?? stampFor(current, turn.turnId);
  const { strict: isStrict = false } = current.options;
  const execution = new Execution({ turn, stamp, isStrict, napMs });
  const given = inputOf([...turn.earlier, ...turn.held.opening]);
  const places = new Places(execution, typeof given === "string" ? given : "");
  const code = async () => {
    const workflow = await chooseCode(execution, current);
    const input = await readInput(workflow, given, stamp);
    const flow = new CodeFlow({ execution, places, workflow, version: stamp.version, isOutermost: true });
    return finish(turn, workflow, await workflow.run(flow, input));
  };
  return execution.work(code).catch((reason: unknown) => {
    if (!(reason instanceof Restart)) throw reason;
    return { reason: "restart", next: nextTurn(execution, { workflow: current, open, input: reason.input }) };
  });
}

/** The next turn of the execution: with the code of today, and the signals that no step took. */
function nextTurn(
  { turn, stamp, records }: Execution,
  { workflow, open, input }: { workflow: Workflow; open: OpenTurn | null; input: unknown },
): readonly Draft[] {
  const { context, held, plan } = turn;
  const what = `The input of the workflow "${workflow.name}"`;
  const text = writeJson(ownValue(input, what) ?? null, what, outputLimits);
  const next: ExecutionStamp = { ...stampFor(workflow, stamp.executionId), input: "json" };
  const turnId = context.ids.next();
  const started = turnStarted(context, turnId, {
    runId: held.runId,
    ...(plan.stamp.id !== undefined && { agentId: plan.stamp.id }),
    ...(open?.by !== undefined && { by: open.by }),
    request: plan.wholeRequest,
    metadata: { ...open?.metadata, workflow: { ...next } },
    continues: { turnId: turn.turnId },
  });
  const message = messageAdded(context, turnId, { role: "user", content: text }, { source: "user" });
  const signals = records.untaken.map(({ id, name, payload }) =>
    signalReceived(context, `${id}.again`, { name, ...(payload !== undefined && { payload }) }),
  );
  return [started, message, ...signals];
}

/** The code that an execution goes on with that may have begun with other code. */
async function chooseCode(execution: Execution, current: Workflow): Promise<Workflow> {
  const { turn, stamp } = execution;
  const { onChange = "continue", versions = [] } = current.options;
  if (stamp.digest === current.digest) return current;
  const data = { began: stamp.version, now: current.options.version ?? 1 };
  const about = `The execution began with version ${data.began} of the workflow "${stamp.name}"`;
  if (onChange === "pin") {
    const pinned = versions.find(({ digest }) => digest === stamp.digest);
    if (pinned) return pinned;
    throw new BoughError("workflow_changed", `${about}, which is not among its versions.`, { data });
  }
  const refusal = current.refuses?.(execution.records.steps());
  if (refusal !== undefined) throw new BoughError("workflow_changed", `${about}: ${refusal}`, { data });
  if (onChange === "continue") return current;
  if (onChange === "ask") {
    const request = { toolName: stamp.name, input: data, description: `${about}. Go on with version ${data.now}?` };
    const answer = await turn.asking.ask({ kind: "permission", key: `workflow:${current.digest}`, request });
    if (answer.answered && answer.answer.approved === true) return current;
  }
  throw new BoughError("workflow_changed", `${about}, and does not go on with version ${data.now}.`, { data });
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
