// The work of one node: its agent, function or workflow, the question after it, and what becomes of a failure.
//   NodeWork-1. All that is recorded has a key that follows from the node and its round, or is counted in the order of its rounds.
//   NodeWork-2. A failure is what the work threw. That the execution is parked, interrupted or taken over is none: it passes on.

import type { Json, JsonObject } from "../../base/json.ts";
import { isObject } from "../../base/options.ts";
import type { OutputChoice } from "../../runs/index.ts";
import { needValue } from "../engine/values.ts";
import type { Flow, StepContext, StepRetry } from "../port.ts";
import { isMet, type ReadCondition } from "./condition.ts";
import type { GraphValues, Handoff, Router } from "./definition.ts";
import { isNamedCode, type Judge } from "./edge.ts";
import type { PlannedAgent, PlannedFunction, PlannedNode } from "./plan.ts";
import { fillTemplate } from "./template.ts";

/** How a node ended, if its graph goes on. */
export type Outcome =
  | { readonly type: "done"; readonly output: unknown }
  | { readonly type: "skipped"; readonly why: string };

/** A node in its round. */
export interface NodeTask {
  readonly node: PlannedNode;
  /** The same in every round: its id, or the way to it as a fallback. */
  readonly name: string;
  readonly key: string;
  /** What it works with. */
  readonly input: unknown;
  readonly values: GraphValues;
}

export interface NodeWork {
  readonly flow: Flow;
  readonly nodes: ReadonlyMap<string, PlannedNode>;
  /** Waits for a place among the nodes that work, and gives it back. */
  readonly inPlace: <T>(work: () => Promise<T>) => Promise<T>;
}

/** What a node works with, where that is said; else what leads to it gives. */
export function inputOf({ input }: PlannedNode, values: GraphValues, given: unknown): unknown {
  if (!input) return given;
  return isNamedCode(input) ? input.code(values) : fillTemplate(input, values);
}

/** Runs a node to its end; throws when the graph is to fail. */
export async function workOn(work: NodeWork, task: NodeTask): Promise<Outcome> {
  try {
    const output = await work.inPlace(() => execute(work.flow, task));
    return await approve(work.flow, task, output);
  } catch (error) {
    if (work.flow.signal.aborted) throw error;
    return recover(work, task, error);
  }
}

async function recover(work: NodeWork, task: NodeTask, error: unknown): Promise<Outcome> {
  const { onError } = task.node;
  if (onError === "stop") throw error;
  const { message, code } = Object(error) as { message?: unknown; code?: unknown };
  const words = String(message ?? error);
  if (onError === "skip") return { type: "skipped", why: `failed: ${words}` };
  if (onError === "isolate") {
    return { type: "done", output: { error: { message: words, ...(typeof code === "string" && { code }) } } };
  }
  const node = work.nodes.get(onError.fallback)!;
  const input = inputOf(node, task.values, task.input);
  const [name, key] = [task.name, task.key].map((each) => `${each}.fallback.${node.id}`) as [string, string];
  return workOn(work, { ...task, node, input, name, key });
}

function execute(flow: Flow, task: NodeTask): Promise<unknown> {
  const { node, name, input } = task;
  if (node.kind === "workflow") return flow.workflow(name, node.workflow.code, input);
  return node.kind === "agent" ? runAgent(flow, node, task) : runFunction(flow, node, task);
}

function runFunction(flow: Flow, node: PlannedFunction, { key, values }: NodeTask): Promise<unknown> {
  const { run, output, effect, reconcile } = node;
  const what = `The output of the node "${node.id}"`;
  const work = async (context: StepContext) =>
    needValue(output, await run.code(values, context), { code: "output_invalid", what });
  return flow.step(key, work, {
    key,
    ...triedAs(node),
    ...(effect && { effect }),
    ...(reconcile && { reconcile: reconcile.code }),
  });
}

async function runAgent(flow: Flow, node: PlannedAgent, { key, input }: NodeTask): Promise<unknown> {
  const { agent, output, router, instructions, conversation } = node;
  const options = {
    key,
    nodeId: node.id,
    ...triedAs(node),
    ...(instructions !== undefined && { instructions }),
    ...(conversation && { conversation }),
  };
  if (router)
    return handoff(router, () => flow.agent(key, agent.code, input, { ...options, output: choiceOf(router) }));
  if (output) return (await flow.agent(key, agent.code, input, { ...options, output })).output;
  return (await flow.agent(key, agent.code, input, options)).text;
}

function triedAs({ retry, timeoutMs }: PlannedNode): { retry?: StepRetry; timeoutMs?: number } {
  const { when, ...rest } = retry ?? {};
  return {
    ...(retry && { retry: { ...rest, ...(when && { when: when.code }) } as StepRetry }),
    ...(timeoutMs !== undefined && { timeoutMs }),
  };
}

/** A router's answer is a call of one of its tools, which it must make. */
function choiceOf({ to }: Router): OutputChoice {
  const said = { type: "string", description: "What the next one should know." };
  const schema = (description: string): JsonObject => ({
    type: "object",
    description,
    properties: { response: said },
    additionalProperties: false,
  });
  const union = Object.fromEntries(Object.entries(to).map(([id, words]) => [id, schema(words)]));
  return { union, mode: "tool", toolPrefix: "handoff_to_" };
}

async function handoff({ otherwise }: Router, ask: () => Promise<{ readonly output: unknown }>): Promise<Handoff> {
  try {
    const { type, value } = (await ask()).output as { type: string; value: { response?: string } };
    return { handoff: type, ...(value.response !== undefined && { response: value.response }) };
  } catch (error) {
    // The agent came to its end without a call that hands over.
    if (otherwise === undefined || Object(error).code !== "output_invalid") throw error;
    return { handoff: otherwise };
  }
}

async function approve(flow: Flow, { node, name, key, values }: NodeTask, output: unknown): Promise<Outcome> {
  const { approve } = node;
  const seen = { ...values, outputs: { ...values.outputs, [node.id]: output } };
  if (!approve || !(await judge(flow, approve.when, `${key}.approve.when`, output, seen)))
    return { type: "done", output };
  const { message, timeoutMs, onTimeout = "fail" } = approve;
  const request = {
    toolName: node.id,
    input: (output ?? null) as Json,
    ...(message !== undefined && { description: message }),
  };
  try {
    const answer = await flow.ask(`${name}.approve`, { request, ...(timeoutMs !== undefined && { timeoutMs }) });
    if (answer.approved === true) return { type: "done", output: merged(output, answer.output) };
    const { reason } = answer;
    return { type: "skipped", why: typeof reason === "string" && reason !== "" ? `denied: ${reason}` : "denied" };
  } catch (error) {
    const isLate = onTimeout === "approve" && Object(error).code === "no_answer" && !flow.signal.aborted;
    if (!isLate) throw error;
    return { type: "done", output };
  }
}

/** What a person adds to an output: fields to fields; anything else takes its place. */
function merged(output: unknown, given: Json | undefined): unknown {
  if (given === undefined) return output;
  const added = isObject(given) && typeof given.type === "string" && "value" in given ? given.value : given;
  return isObject(output) && isObject(added) ? { ...output, ...added } : added;
}

/** Whether something holds: a condition follows from the output; the answer of a function is recorded. */
export function judge(
  flow: Flow,
  given: Judge | undefined,
  key: string,
  output: unknown,
  values: GraphValues,
): boolean | Promise<boolean> {
  if (given === undefined) return true;
  if (!isNamedCode(given)) return isMet(given as ReadCondition, output);
  return flow.step(key, async () => Boolean(await given.code(values)), { key });
}
