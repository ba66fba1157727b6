// Agents as steps: a node's agent is a child of the execution, on the branch that the conversation policy gives it. Without a
// policy its conversation is kept nowhere: only the step's record is.

import { BoughError } from "../../base/errors.ts";
import { type JsonObject, outputLimits, ownJson } from "../../base/json.ts";
import type { Fact, Part, UnknownFact } from "../../events/index.ts";
import type { ParentRun } from "../../runs/children/port.ts";
import { spawnChild } from "../../runs/children/spawn.ts";
import { Parked } from "../../runs/endings.ts";
import type { OutputChoice, Run, RunOptions, RunResult } from "../../runs/index.ts";
import { createContext } from "../../sessions/context.ts";
import { Sessions } from "../../sessions/index.ts";
import { lazyStore } from "../../sessions/lazy-store.ts";
import type { SpawnableAgent } from "../../tools/index.ts";
import type { AgentNodeOptions, ConversationPolicy } from "../port.ts";
import type { Execution } from "./execution.ts";
import type { Places } from "./places.ts";
import type { FlowScope } from "./scope.ts";
import { askFor, type StepOutcome } from "./steps.ts";
import { digestOf } from "./values.ts";

/** A node that asks for its agent. */
export interface AgentNode {
  readonly execution: Execution;
  readonly places: Places;
  readonly key: string;
  readonly name: string;
  readonly agent: SpawnableAgent;
  readonly input: unknown;
  readonly policy: ConversationPolicy;
  readonly options: AgentNodeOptions;
}

interface Attempt {
  readonly attempt: number;
  readonly signal: AbortSignal;
  readonly scope: FlowScope;
}

export function runAgentNode(node: AgentNode): Promise<unknown> {
  const { execution, key, policy, options } = node;
  const input = inputOf(node);
  const { retry, timeoutMs } = options;
  const { children } = execution.turn;
  return askFor({
    execution,
    key,
    kind: "agent",
    retry,
    timeoutMs,
    input: digestOf(input, `The input of the agent "${node.name}"`),
    run: (about) => (policy === "none" ? runInMemory(node, input, about) : runOnBranch(node, input, about)),
    more() {
      const { child, usage } = children.resultOf(key);
      return { ...(child && { child }), ...(usage && { usage: { ...usage } }) };
    },
  });
}

type NodeInput = string | readonly Part[];

/** Text and parts as they are, anything else as JSON. */
function inputOf({ input, name }: AgentNode): NodeInput {
  if (typeof input === "string") {
    if (input !== "") return input;
    throw new BoughError("invalid_argument", `The agent "${name}" got an empty input.`, { data: { node: name } });
  }
  if (isParts(input)) return input;
  if (input === undefined) {
    throw new BoughError("invalid_argument", `The agent "${name}" got no input.`, { data: { node: name } });
  }
  return JSON.stringify(ownJson(input, `The input of the agent "${name}"`, outputLimits));
}

function isParts(input: unknown): input is readonly Part[] {
  const isPart = (each: unknown) => ["text", "file"].includes(Object(each).type);
  return Array.isArray(input) && input.length > 0 && input.every(isPart);
}

async function runOnBranch(node: AgentNode, input: NodeInput, { attempt, signal }: Attempt): Promise<StepOutcome> {
  const { execution, places, key, agent, options } = node;
  const { turn } = execution;
  const policy = node.policy as Exclude<ConversationPolicy, "none">;
  const found = await turn.host.find(agent, turn.plan.stamp);
  const { metadata, nodeId = node.name, output, limits, context } = options;
  const ref = await places.branchFor({ policy, nodeId, agent: found, metadata });
  const spawning = {
    ...{ turn, callId: key, toolName: key, messageId: "", isLeft: true, attempt, signal },
    count: { next: 0 },
    config: configOf(options),
  };
  const asked = {
    key: "",
    branch: { existing: ref.branchId },
    ...(output !== undefined && { output }),
    ...(limits && { limits }),
    ...(context !== undefined && { context }),
  };
  const child = await places.inTurn(ref, () => spawnChild(spawning, agent, input, asked)).catch(withoutAnswer);
  const value = { text: child.text, ...(child.output !== undefined && { output: child.output }) };
  const { child: end, usage } = turn.children.resultOf(key);
  return {
    value: { ...value, usage: child.usage, ref: child.ref },
    more: { ...(end && { child: end }), ...(usage && { usage: { ...usage } }) },
  };
}

/** An agent that gave no answer of the form it was asked for has failed with that code: a router may go on without one. */
function withoutAnswer(error: unknown): never {
  if (!BoughError.is(error) || error.data.code !== "output_invalid") throw error;
  throw new BoughError("output_invalid", error.message, { data: error.data, cause: error });
}

function configOf({ instructions }: AgentNodeOptions): RunOptions["config"] {
  return instructions === undefined ? {} : { addInstructions: instructions };
}

/** The agent in a session that goes with it. What it asks people is a question of the execution. */
async function runInMemory(node: AgentNode, input: NodeInput, { signal }: Attempt): Promise<StepOutcome> {
  const { execution, key, agent, options } = node;
  const { turn } = execution;
  refuseDepth(node);
  const found = await turn.host.find(agent, turn.plan.stamp);
  const { clock, ids } = turn.context;
  const context = createContext(lazyStore(undefined, { clock }), { clock, ids });
  const { id: sessionId } = await new Sessions(context).createSession();
  let run: Run | undefined;
  let questions = 0;
  const see = (fact: Fact | UnknownFact) => {
    if (fact.type === "interaction.opened") void answer(node, () => run!, { fact, count: ++questions });
  };
  const ref = { sessionId, branchId: "main" };
  const parent = {
    ...parentRun(node, see),
    track: (tokens: () => number) => turn.children.track(key, tokens),
  };
  run = found.launch(input as string, { context, ref, parent, options: runOptions(node) }) as Run;
  run.discardEvents();
  const stop = () => void run?.interrupt("parent-ended").catch(() => {});
  signal.addEventListener("abort", stop, { once: true });
  try {
    const result = await run.result;
    if (signal.aborted) throw signal.reason;
    return outcomeOf(found.name, result, options);
  } finally {
    turn.children.track(key, () => 0);
    signal.removeEventListener("abort", stop);
    await context.close();
  }
}

function outcomeOf(name: string, result: RunResult, { output }: AgentNodeOptions): StepOutcome {
  if (result.status !== "completed") {
    const { error, reason = "no reason was given", status } = result;
    const words = error?.message ?? reason;
    const sentence = `The agent "${name}" ${status === "failed" ? "failed" : `was ${status}`}: ${words}`;
    const failure = new BoughError("run_failed", /[.!?]$/.test(sentence) ? sentence : `${sentence}.`, {
      data: { agent: name, status, ...(error && { code: error.code }) },
      cause: error,
    });
    return withoutAnswer(failure);
  }
  const { text, totalUsage } = result;
  const usage = { ...totalUsage } as JsonObject;
  return { value: { text, ...(output !== undefined && { output: result.output }), usage }, more: { usage } };
}

function refuseDepth({ execution: { turn }, name }: AgentNode): void {
  const { stamp, limits } = turn.plan;
  if (stamp.depth < limits.maxDepth) return;
  const sentence = `The agent "${name}" can't be started: limits.maxDepth is ${limits.maxDepth}.`;
  throw new BoughError("limit_exceeded", sentence, { data: { limit: "depth", value: limits.maxDepth } });
}

function parentRun({ execution: { turn } }: AgentNode, see: (fact: Fact | UnknownFact) => void): ParentRun {
  const { plan, emitter } = turn;
  return {
    agent: plan.stamp,
    rootId: turn.rootId,
    emitter,
    maxDepth: plan.limits.maxDepth,
    leaving: plan.leaving,
    // Its questions are the execution's, which waits for the answers in its own way.
    isListenedTo: () => plan.questions !== "deny",
    see,
    tokenLimit: () => turn.tokenLimit(),
    track: () => {},
  };
}

function runOptions({ execution: { turn }, options }: AgentNode): RunOptions {
  const { plan, asked } = turn;
  const { permissionMode, tighten } = plan.config;
  const { output, limits, context = plan.wholeRequest?.context } = options;
  const bound = plan.permissionBound;
  const tightened = { ...tighten, ...(bound && { permissionMode: bound }) };
  return {
    config: {
      ...configOf(options),
      ...(permissionMode && { permissionMode }),
      ...(limits && { limits }),
      ...(Object.keys(tightened).length > 0 && { tighten: tightened }),
    },
    questions: plan.questions === "deny" ? "deny" : "wait",
    ...(output !== undefined && { output: output as OutputChoice }),
    ...(context !== undefined && { context }),
    ...(Object.keys(asked.identity).length > 0 && { identity: asked.identity }),
    ...(asked.by !== undefined && { by: asked.by }),
  };
}

/** A node that begins again asks the same questions in the same order, and gets the answers it got. */
async function answer(
  { execution, key }: AgentNode,
  run: () => Run,
  { fact, count }: { fact: Fact<"interaction.opened">; count: number },
): Promise<void> {
  const { turn } = execution;
  const { kind, request } = fact;
  try {
    const question = { kind, key: `step:${key}:${count}`, request: { ...request, step: key } };
    const given = await turn.asking.ask(question);
    if (given.answered) await run().respond(fact.id, given.answer);
    else await run().interrupt("no answer");
  } catch (error) {
    if (!execution.isLeft && !turn.signal.aborted && error instanceof Parked) execution.leave(error);
  }
}
