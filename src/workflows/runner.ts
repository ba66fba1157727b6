// The runner of a workflow: an agent whose loop is the workflow's code. Runs, recovery, questions, interrupts, streams and
// sessions are those of agents.

import { Agent, contextOf, startableOf } from "../agent/agent.ts";
import type { AgentOptions } from "../agent/index.ts";
import { notAnAgent, refuseStore } from "../agent/startable.ts";
import type { Clock } from "../base/clock.ts";
import { BoughError } from "../base/errors.ts";
import { checkId, type Ids } from "../base/ids.ts";
import { type JsonObject, outputLimits, writeJson } from "../base/json.ts";
import { anything, checkOptions, fn, number, object, optionTable, text } from "../base/options.ts";
import type { BranchRef, Store } from "../log/store.ts";
import type { LanguageModel } from "../models/index.ts";
import type { BranchView } from "../projection/index.ts";
import type { Run, RunOptions } from "../runs/index.ts";
import type { Context } from "../sessions/context.ts";
import { ensureSession, mainBranch } from "../sessions/session.ts";
import type { SpawnableAgent } from "../tools/index.ts";
import { stampsOf } from "./engine/places.ts";
import { execute, stampFor } from "./engine/program.ts";
import { ownValue } from "./engine/values.ts";
import type { Workflow } from "./port.ts";
import { isWorkflow } from "./workflow.ts";

type Shared = Pick<
  AgentOptions,
  | "context"
  | "tenant"
  | "events"
  | "limits"
  | "middleware"
  | "permissions"
  | "leaseMs"
  | "redact"
  | "logger"
  | "random"
  | "owner"
  | "cacheBytes"
  | "telemetry"
>;

/** Options of `createWorkflow`. */
export interface WorkflowRunnerOptions extends Shared {
  /** Stored with every execution; recovery resumes only executions with this id (default: the workflow's name). */
  readonly id?: string;
  /** A store, a directory, or a URL such as `sqlite:./bough.db` (default: memory). */
  readonly store?: Store | string;
  /** The agents that nodes name by id: by id, or a function that finds them. */
  readonly agents?: Readonly<Record<string, SpawnableAgent>> | AgentOptions["agents"];
  /** Waits up to this long keep the process; longer ones sleep (default 5,000). */
  readonly napMs?: number;
  readonly clock?: Clock;
  readonly ids?: Ids;
}

const optionsTable = optionTable<WorkflowRunnerOptions>({
  id: text,
  store: anything,
  agents: anything,
  events: anything,
  napMs: number,
  clock: object,
  ids: object,
  context: anything,
  tenant: text,
  limits: object,
  middleware: anything,
  permissions: object,
  leaseMs: number,
  redact: anything,
  logger: object,
  random: fn,
  owner: text,
  cacheBytes: number,
  telemetry: anything,
});

/** How an execution is run. */
export interface ExecutionOptions extends Omit<RunOptions, "output" | "config" | "branch"> {
  /** The execution (default: a new one). An id is used once; without an input, its execution goes on. */
  readonly executionId?: string;
  readonly config?: Pick<NonNullable<RunOptions["config"]>, "limits" | "permissionMode">;
}

/** A runner whose inputs and outputs are those of its workflow. */
export type TypedRunner<Input, Output> = {
  run(input?: Input, options?: ExecutionOptions | string): Run<Output>;
} & WorkflowRunner;

/** Runs the executions of a workflow, with everything that an agent has. Made by `createWorkflow`. */
export class WorkflowRunner extends Agent {
  readonly workflow: Workflow;
  readonly #context: Context;

  constructor(workflow: Workflow, options: WorkflowRunnerOptions, shared?: Context) {
    const program = {
      loop: (turn: Parameters<typeof execute>[0]) => execute(turn, workflow, { napMs: options.napMs ?? 5000 }),
      stamp: (runId: string): JsonObject => ({ workflow: { ...stampFor(workflow, runId) } }),
    };
    super(agentOptions(workflow, options), shared, program);
    this.workflow = workflow;
    this.#context = contextOf(this as Agent);
  }

  /**
   * Begins an execution, or without an input goes on with the one that is named. It has a session of its own unless one is
   * given; `result.output` is what the workflow returns.
   */
  // biome-ignore lint/suspicious/noExplicitAny: the type of `createWorkflow` says which input the workflow takes
  override run(input?: any, given: ExecutionOptions | RunOptions | string = {}): Run<any> {
    const options = typeof given === "string" ? { sessionId: given } : (given as ExecutionOptions & RunOptions);
    const { executionId, ...asked } = options;
    const isElsewhere = asked.sessionId !== undefined || asked.branch !== undefined;
    if (input === undefined) {
      const place = executionId === undefined || isElsewhere ? {} : this.scope(executionId);
      return super.run(undefined, { ...asked, ...place });
    }
    const id = executionId ?? this.#context.ids.next();
    checkId(id, "execution");
    const isText = typeof input === "string" && input !== "";
    const stamp = { ...stampFor(this.workflow, id), ...(!isText && { input: "json" as const }) };
    const message = isText ? input : encode(this.workflow, input);
    const metadata = { ...asked.metadata, workflow: { ...stamp } as unknown as JsonObject };
    if (isElsewhere) return super.run(message, { ...asked, metadata });
    const opening = { turnId: this.#context.ids.next(), check: refuseUsed(id) };
    return startableOf(this)!.launcher.launch(message, { ...asked, metadata }, { opening, place: this.#newPlace(id) });
  }

  /** The branch of an execution that has a session of its own. */
  scope(executionId: string): BranchRef {
    const { name } = this.workflow;
    return { sessionId: `workflow-${name}-${executionId}`, branchId: mainBranch };
  }

  /** Killed after its session was made, an execution begins there. */
  async #newPlace(executionId: string): Promise<{ context: Context; ref: BranchRef }> {
    const ref = this.scope(executionId);
    const { name, options } = this.workflow;
    const metadata = stampsOf({ name, executionId }, options.conversation ?? "none");
    await ensureSession(this.#context, ref.sessionId, { metadata });
    return { context: this.#context, ref };
  }
}

/**
 * Makes a workflow ready to run on a store. The runner is an agent: it has sessions, answers, interrupts, recovery and events.
 *
 * @example
 * const runner = createWorkflow(review, { store: "sqlite:./bough.db" });
 * const run = runner.run({ text: "…" }, { executionId: "case-7" });
 * const { output } = await run.result;
 */
export function createWorkflow<Input, Output>(
  workflow: Workflow<Input, Output>,
  options: WorkflowRunnerOptions = {},
): TypedRunner<Input, Output> {
  return new WorkflowRunner(checked(workflow, options), options) as TypedRunner<Input, Output>;
}

function checked(workflow: unknown, options: WorkflowRunnerOptions): Workflow {
  if (!isWorkflow(workflow)) {
    throw new BoughError("invalid_argument", "createWorkflow needs a workflow made by workflow() or graph().");
  }
  checkOptions("The options of createWorkflow", options, optionsTable);
  const { agents = {} } = options;
  const known = [...(workflow.agents ?? []), ...(typeof agents === "function" ? [] : Object.values(agents))];
  for (const agent of known) {
    const found = typeof agent === "object" && startableOf(agent);
    if (typeof agent === "string") continue;
    if (!found) throw notAnAgent();
    refuseStore(found);
  }
  return workflow;
}

function agentOptions(workflow: Workflow, options: WorkflowRunnerOptions): AgentOptions {
  const { agents, id = workflow.name, napMs: _napMs, ...rest } = options;
  const find = typeof agents === "object" ? (agentId: string) => findIn(agents, agentId) : agents;
  return { ...rest, id, name: workflow.name, model: noModel, ...(find && { agents: find }) } as AgentOptions;
}

function findIn(agents: Readonly<Record<string, SpawnableAgent>>, id: string) {
  const found = Object.hasOwn(agents, id) ? agents[id] : undefined;
  return typeof found === "object" ? found : undefined;
}

/** What an execution's turns would ask if they asked a model. */
const noModel = {
  specificationVersion: "v4",
  provider: "bough",
  modelId: "workflow",
  supportedUrls: {},
  doGenerate: () => Promise.reject(noCalls()),
  doStream: () => Promise.reject(noCalls()),
} as unknown as LanguageModel;

function noCalls(): BoughError {
  return new BoughError("invalid_argument", "A workflow calls no model itself; its agents do.");
}

function encode({ name }: Workflow, input: unknown): string {
  const what = `The input of the workflow "${name}"`;
  return writeJson(ownValue(input, what)!, what, outputLimits);
}

function refuseUsed(executionId: string) {
  return ({ open, turns, skippedTurns, staged }: BranchView) => {
    if (!open && turns.length + skippedTurns + staged.length === 0) return;
    const how = open ? "is open: run() without an input goes on with it" : "has ended";
    throw new BoughError("session_exists", `The execution "${executionId}" ${how}.`, { data: { executionId } });
  };
}
