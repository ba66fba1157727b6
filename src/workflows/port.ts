// The workflow port: what a workflow is, and the `flow` object that its code works with. The engine implements it; graphs are
// written against it.

import type { Json, JsonObject } from "../base/json.ts";
import type { OwnEventDefinition } from "../events/index.ts";
import type { OutputChoice, OutputOf } from "../runs/index.ts";
import type { InputOf, JsonSchemaInput, SpawnableAgent, SpawnLimits, ToolRetry } from "../tools/index.ts";

/** A schema of an input, an output or a payload: any Standard Schema, the AI SDK's `jsonSchema()`, or plain JSON Schema. */
export type FlowSchema<Output = unknown> =
  | JsonSchemaInput<Output>
  | JsonObject
  | {
      readonly "~standard": {
        readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
        // biome-ignore lint/suspicious/noExplicitAny: each library has its own type of issue
        readonly validate: (value: unknown) => any;
      };
    };

/** What a schema gives. */
export type FlowOutputOf<Schema> = InputOf<Schema>;

/**
 * Where the agents of a workflow keep their conversations. "none": nowhere; only a node's result is kept. "shared": all on one
 * branch, one after the other. "perNode": a branch for each node. "forkPerNode": a fork for each node of the branch that has the
 * workflow's input.
 */
export type ConversationPolicy = "none" | "shared" | "perNode" | "forkPerNode";

/** How a failed step is tried again. */
export interface StepRetry extends ToolRetry {
  /** What the delay is multiplied with after each attempt (default 2). */
  readonly factor?: number;
}

/** What `reconcile` finds out about a step that may have run: its output, that it did not run, or nothing. */
export type Reconciled<Output> = { readonly output: Output } | "not-executed" | undefined;

/** How a step runs. */
export interface StepOptions<Output = unknown> {
  /** Identifies the step in its place, instead of its name and a count. */
  readonly key?: string;
  /** Whether the step may run again after a crash (default "retry"). "once": `reconcile` or a person decides. */
  readonly effect?: "retry" | "once";
  /** How a failed step is tried again (default: not at all). Long delays sleep. */
  readonly retry?: StepRetry;
  /** The timeout of one attempt (default: none). */
  readonly timeoutMs?: number;
  /** Determines after a crash what a step with `effect: "once"` did. */
  readonly reconcile?: (context: StepContext) => Reconciled<Output> | Promise<Reconciled<Output>>;
  /** What the step is given. Its digest is recorded; asking for the step with another input is reported. */
  readonly input?: unknown;
}

/** What a step's function gets. */
export interface StepContext {
  readonly executionId: string;
  /** The same at every attempt and after every crash: an idempotency key. */
  readonly stepId: string;
  /** The step's identity in its execution. */
  readonly key: string;
  /** The attempt, from 1 on. */
  readonly attempt: number;
  /** Aborts when the attempt's time is over, or the execution is interrupted, parked or taken over. */
  readonly signal: AbortSignal;
}

/** How an agent runs as a node. */
export interface AgentNodeOptions<Output extends OutputChoice = OutputChoice> {
  /** Identifies the step in its place, instead of its name and a count. */
  readonly key?: string;
  /** The schema of the agent's answer. */
  readonly output?: Output;
  /** Overrides the workflow's policy. */
  readonly conversation?: ConversationPolicy;
  /** The node, in stamps and in the ids of branches (default: the name). Rounds of a loop share a node. */
  readonly nodeId?: string;
  /** Instructions beside the agent's own. */
  readonly instructions?: string;
  readonly retry?: StepRetry;
  readonly timeoutMs?: number;
  readonly limits?: SpawnLimits;
  /** JSON for the agent's tools and hooks (default: the execution's `context`). */
  readonly context?: unknown;
  /** Stored with the node's branch, beside its stamps. */
  readonly metadata?: JsonObject;
}

/** How an agent ended as a node. */
export interface AgentNodeResult<Output = unknown> {
  readonly text: string;
  /** The structured output; undefined without `output`. */
  readonly output: Output;
  /** What the agent used, with its children. */
  readonly usage: JsonObject;
  /** Where it worked; absent with the policy "none". */
  readonly ref?: {
    readonly sessionId: string;
    readonly branchId: string;
    readonly turnId: string;
    readonly seq: number;
  };
}

/** Functions by name, of which each is a place of its own for steps. */
export type FlowBranches = Readonly<Record<string, () => unknown>>;

/** The outcome of the branch that was first. */
export type FirstOf<Branches extends FlowBranches> = {
  [Name in keyof Branches & string]: { readonly name: Name; readonly value: Awaited<ReturnType<Branches[Name]>> };
}[keyof Branches & string];

/** How items are worked on. */
export interface MapOptions<Item> {
  /** Identifies an item (default: its index). */
  readonly key?: (item: Item, index: number) => string;
  /** How many items are worked on at the same time (default: the workflow's `parallel`). */
  readonly parallel?: number;
}

/** A question to a person. */
export interface AskOptions {
  /** What kind of question it is (default "permission": answered with `{ approved }`). */
  readonly kind?: "permission" | "clarification";
  /** What the person is shown. */
  readonly request?: JsonObject;
  /** How long it can be answered (default: as long as it takes). Then `ask` throws `no_answer`. */
  readonly timeoutMs?: number;
}

/** What is waited for, and how long. */
export interface WaitOptions<Schema extends FlowSchema = FlowSchema> {
  /** Validates the payload. */
  readonly schema?: Schema;
  /** How long the signal is waited for (default: as long as it takes). Then `wait` throws `no_answer`. */
  readonly timeoutMs?: number;
  /** The signal's name (default: the step's name). */
  readonly signal?: string;
}

/**
 * What the code of a workflow works with. Everything that is recorded is named; a name that is used again in the same place is
 * counted (`fetch`, `fetch#2`). Between steps, code runs again at each resumption, so it must be harmless to repeat.
 */
export interface Flow {
  readonly workflowName: string;
  readonly executionId: string;
  /** The version of the workflow that the execution began with. */
  readonly version: number;
  /** Aborts when the execution is interrupted, parked or taken over. */
  readonly signal: AbortSignal;
  /** Runs a function once and records what it returns, or its error. */
  step<Output>(
    name: string,
    run: (context: StepContext) => Output | Promise<Output>,
    options?: StepOptions<Output>,
  ): Promise<Output>;
  /** Runs an agent as a node. Text and parts are its input as they are; anything else is given as JSON. */
  agent<const Output extends OutputChoice>(
    name: string,
    agent: SpawnableAgent,
    input: unknown,
    options: AgentNodeOptions<Output> & { readonly output: Output },
  ): Promise<AgentNodeResult<OutputOf<Output>>>;
  agent(name: string, agent: SpawnableAgent, input: unknown, options?: AgentNodeOptions): Promise<AgentNodeResult>;
  /** Runs another workflow in this execution; its steps are recorded under the name. */
  workflow<Input, Output>(name: string, workflow: Workflow<Input, Output>, input: Input): Promise<Output>;
  /** Runs all of them at the same time. The first failure rejects when the others have settled. */
  all<Branches extends FlowBranches>(
    branches: Branches,
  ): Promise<{ -readonly [Name in keyof Branches]: Awaited<ReturnType<Branches[Name]>> }>;
  all<Branches extends FlowBranches>(
    name: string,
    branches: Branches,
  ): Promise<{ -readonly [Name in keyof Branches]: Awaited<ReturnType<Branches[Name]>> }>;
  /** Takes the first that succeeds, and stops the others. Which one is recorded. */
  any<Branches extends FlowBranches>(name: string, branches: Branches): Promise<FirstOf<Branches>>;
  /** Takes the first that settles, and stops the others. Which one is recorded. */
  race<Branches extends FlowBranches>(name: string, branches: Branches): Promise<FirstOf<Branches>>;
  /** Runs a function for each item; the results are in the order of the items. */
  map<Item, Output>(
    name: string,
    items: Iterable<Item>,
    run: (item: Item, index: number) => Output | Promise<Output>,
    options?: MapOptions<Item>,
  ): Promise<Awaited<Output>[]>;
  /** Asks a person. The execution parks until the answer is there. */
  ask(name: string, options?: AskOptions): Promise<JsonObject>;
  /** Waits for a signal, which may have come before. */
  wait<const Schema extends FlowSchema>(
    name: string,
    options: WaitOptions<Schema> & { readonly schema: Schema },
  ): Promise<FlowOutputOf<Schema>>;
  wait(name: string, options?: WaitOptions): Promise<Json>;
  /** Sleeps. Nothing runs meanwhile, and nothing is held in memory. */
  sleep(name: string, ms: number): Promise<void>;
  /** Sleeps until a time. */
  until(name: string, time: number | Date): Promise<void>;
  /** The time, recorded. */
  now(name?: string): Promise<number>;
  /** A random number from 0 to 1, recorded. */
  random(name?: string): Promise<number>;
  /** A new id, recorded. */
  id(name?: string): Promise<string>;
  /** Emits an event that the runner defined (once, if it is kept), or shows data as `custom-emit`. */
  emit(name: string, data: Json): Promise<void>;
  emit<Input>(event: OwnEventDefinition<string, Input, unknown>, data: Input): Promise<void>;
  /** Saves a checkpoint of the execution; returns its id. */
  checkpoint(label?: string): Promise<string>;
  /** Ends this turn of the execution and begins the next one with an input, without the steps so far. */
  restart(input: unknown): Promise<never>;
  /** Records that a step was left out, for those who look at the execution. */
  skip(name: string, why: string): Promise<void>;
}

/** How an execution goes on that began with other code. */
export type OnChange = "continue" | "pin" | "fail" | "ask";

/** Options of a workflow. */
export interface WorkflowOptions<Input = unknown, Output = unknown> {
  readonly description?: string;
  /** Validates the input of an execution. */
  readonly input?: FlowSchema<Input>;
  /** Validates what the workflow returns. */
  readonly output?: FlowSchema<Output>;
  /** The version of the code, from 1 on (default 1). */
  readonly version?: number;
  /** Where agents keep their conversations (default "none"). */
  readonly conversation?: ConversationPolicy;
  /** How many branches and items are worked on at the same time (default 8). */
  readonly parallel?: number;
  /** Whether an execution fails whose records the code did not ask for (default: it is reported). */
  readonly strict?: boolean;
  /** What becomes of executions that began with another version (default "continue"). */
  readonly onChange?: OnChange;
  /** Earlier versions, for `onChange: "pin"`. */
  // biome-ignore lint/suspicious/noExplicitAny: an earlier version may have had other types
  readonly versions?: readonly Workflow<any, any>[];
}

/** A record of an execution, as far as a change of the code is judged by it. */
export interface RecordedStep {
  readonly key: string;
  readonly kind: "step" | "agent" | "sleep" | "ask" | "wait" | "skip" | "flow";
}

/** A workflow: made by `workflow` or `graph`, run by `createWorkflow`. */
export interface Workflow<Input = unknown, Output = unknown> {
  readonly name: string;
  readonly options: WorkflowOptions<Input, Output>;
  /** Tells one version from another: SHA-256 of the graph, or of name and version. */
  readonly digest: string;
  readonly run: (flow: Flow, input: Input) => Output | Promise<Output>;
  /** The agents that are known before it runs. */
  readonly agents?: readonly SpawnableAgent[];
  /** With `onChange: "continue"`: why an execution with these records can't go on; undefined if it can. */
  readonly refuses?: (recorded: readonly RecordedStep[]) => string | undefined;
  /** The definition as JSON, where it is data. */
  readonly toJSON?: () => JsonObject;
  /** The definition as a picture, where it is data. */
  readonly toMermaid?: () => string;
}
