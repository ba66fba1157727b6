// What a graph is made of, as its author writes it: plain data, with functions, agents and workflows where JSON has their names.

import type { OutputChoice, OutputOf } from "../../runs/index.ts";
import type { InputOf, SpawnableAgent } from "../../tools/index.ts";
import type {
  ConversationPolicy,
  FlowSchema,
  OnChange,
  Reconciled,
  StepContext,
  StepRetry,
  Workflow,
} from "../port.ts";
import type { Condition, NamedFunction } from "./condition.ts";

/** What the functions of a graph see of an execution. */
export interface GraphValues<Input = unknown, Outputs = Readonly<Record<string, unknown>>> {
  readonly input: Input;
  /** The outputs of nodes that come before. A node that was skipped, or did not run yet, has none. */
  readonly outputs: { readonly [Node in keyof Outputs]?: Outputs[Node] };
}

/** What is done when a node has failed at its last attempt. */
export type OnNodeError =
  /** The execution fails (default). */
  | "stop"
  /** The node counts as skipped, and so do those that only it leads to. */
  | "skip"
  /** The node's output is `{ error: { message, code? } }`, and the execution goes on. */
  | "isolate"
  /** Another node, without edges of its own, runs with the same input; its output takes the place of the failed node's. */
  | { readonly fallback: string };

/** A question to a person after a node has run. Denied, the node counts as skipped. */
export interface Approval<Values = GraphValues> {
  /** Whether it is asked: a condition of the node's output (default: always). */
  readonly when?: Condition | NamedFunction | ((values: Values) => boolean | Promise<boolean>);
  /** What the person reads. */
  readonly message?: string;
  /** How long it can be answered (default: as long as it takes). */
  readonly timeoutMs?: number;
  /** What no answer means: the node has failed (default), or is approved. "wait" is the same as no `timeoutMs`. */
  readonly onTimeout?: "fail" | "approve" | "wait";
}

/** An agent that chooses by a call of a tool, which it must make, where the execution goes on. */
export interface Router {
  /** The nodes it can choose, each with what the agent is told of it. */
  readonly to: Readonly<Record<string, string>>;
  /** The node that it goes on with when the agent chose none (default: the router has failed). */
  readonly otherwise?: string;
}

interface NodeBase<Values> {
  readonly approve?: Approval<Values>;
  readonly onError?: OnNodeError;
  /** Starts when every edge into it is decided and one is taken ("all", the default), or with the first that is taken. */
  readonly join?: "all" | "any";
}

interface InputOptions<Values> {
  /** The input as a template: "{{input.text}}", "{{outputs.review.comment}}". */
  readonly prompt?: string;
  /** The input as a function. Default: the output of the only node that leads here, or the graph's input. */
  readonly input?: NamedFunction | ((values: Values) => unknown);
}

/** A node that runs an agent. Its output is the agent's text, or its structured output. */
export interface AgentNode<Values = GraphValues, Output extends OutputChoice = OutputChoice>
  extends NodeBase<Values>,
    InputOptions<Values> {
  /** An agent without a store of its own, or the id of a stored one. */
  readonly agent: SpawnableAgent;
  /** The schema of the agent's answer. */
  readonly output?: Output;
  readonly router?: Router;
  /** Instructions beside the agent's own. */
  readonly instructions?: string;
  /** Overrides the graph's policy. */
  readonly conversation?: ConversationPolicy;
  readonly retry?: NodeRetry;
  /** The timeout of one attempt. */
  readonly timeoutMs?: number;
}

/** A node that runs a function. Its output is what the function returns, as JSON. */
export interface FunctionNode<Values = GraphValues, Output = unknown> extends NodeBase<Values> {
  /** A function, or its name in `functions`. */
  readonly run: NamedFunction | ((values: Values, context: StepContext) => Output | Promise<Output>);
  /** Validates what the function returns; the compiler then knows it in other nodes, too. */
  readonly output?: FlowSchema<Output>;
  /** Whether the function may run again after a crash (default "retry"). "once": `reconcile` or a person decides. */
  readonly effect?: "retry" | "once";
  readonly reconcile?: NamedFunction | ((context: StepContext) => Reconciled<unknown> | Promise<Reconciled<unknown>>);
  readonly retry?: NodeRetry;
  readonly timeoutMs?: number;
}

/** A node that runs a workflow or another graph in this execution. */
export interface WorkflowNode<Values = GraphValues, Output = unknown> extends NodeBase<Values>, InputOptions<Values> {
  /** A workflow, or its name in `workflows`. */
  // biome-ignore lint/suspicious/noExplicitAny: the input is checked by the workflow's own schema
  readonly workflow: Workflow<any, Output> | string;
}

/** How a failed node is tried again; in JSON, `when` stands by its name. */
export interface NodeRetry extends Omit<StepRetry, "when"> {
  readonly when?: StepRetry["when"] | NamedFunction;
}

/** A node of a graph: an agent, a function or a workflow. */
export type GraphNode<Values = GraphValues> = AgentNode<Values> | FunctionNode<Values> | WorkflowNode<Values>;

/** When an edge is taken: a condition of its source's output, a function, or "otherwise" (when no other was). */
export type EdgeWhen<Values = GraphValues> =
  | Condition
  | NamedFunction
  | "otherwise"
  | ((values: Values) => boolean | Promise<boolean>);

/** How often an edge back to an earlier node can be taken. */
export interface EdgeOptions {
  readonly max: number;
}

/** An edge, or several at once. "start" and "end" are the graph's own. */
export type GraphEdge<Node extends string = string, Values = GraphValues> =
  | readonly [from: Many<Node | "start">, to: Many<Node | "end">]
  | readonly [from: Many<Node | "start">, to: Many<Node | "end">, when: EdgeWhen<Values> | EdgeOptions]
  | readonly [from: Many<Node | "start">, to: Many<Node | "end">, when: EdgeWhen<Values>, options: EdgeOptions]
  | {
      readonly from: Many<Node | "start">;
      readonly to: Many<Node | "end">;
      readonly when?: EdgeWhen<Values>;
      readonly max?: number;
    };

type Many<Name> = Name | readonly Name[];

/** What a graph is, besides its nodes and edges. */
export interface GraphSettings<Input = unknown> {
  readonly description?: string;
  /** Validates the input of an execution. */
  readonly input?: FlowSchema<Input>;
  /** The version, from 1 on (default 1). The definition itself tells changes, too. */
  readonly version?: number;
  /** Where agents keep their conversations (default "none"). */
  readonly conversation?: ConversationPolicy;
  /** How many nodes work at the same time (default 8). */
  readonly parallel?: number;
  /** What becomes of executions that began with another definition (default "continue", where their records still fit). */
  readonly onChange?: OnChange;
  /** Earlier definitions, for `onChange: "pin"`. */
  // biome-ignore lint/suspicious/noExplicitAny: an earlier version may have had other types
  readonly versions?: readonly Workflow<any, any>[];
}

/** What JSON has by name. */
export interface GraphBindings {
  readonly agents?: Readonly<Record<string, SpawnableAgent>>;
  /** Functions, and patterns for `matches`. */
  // biome-ignore lint/suspicious/noExplicitAny: functions of every kind go into one table
  readonly functions?: Readonly<Record<string, ((...args: any[]) => unknown) | RegExp>>;
  // biome-ignore lint/suspicious/noExplicitAny: workflows of every kind go into one table
  readonly workflows?: Readonly<Record<string, Workflow<any, any>>>;
}

/** A graph as its author writes it, whatever the types of its values. */
export interface GraphDefinition extends GraphSettings {
  readonly nodes: Readonly<Record<string, GraphNode>>;
  readonly edges: readonly GraphEdge[];
  /** What an execution gives: a template or a function (default: the output of the node that leads to the end). */
  readonly output?: string | NamedFunction | ((values: GraphValues) => unknown);
}

/** The output of a node, as far as the compiler knows it. */
export type NodeOutput<Node> = Node extends { readonly agent: unknown }
  ? Node extends { readonly router: unknown }
    ? Handoff
    : Node extends { readonly output: infer Choice }
      ? OutputOf<Choice>
      : string
  : Node extends { readonly workflow: { readonly run: (...args: never[]) => infer Output } }
    ? Awaited<Output>
    : Node extends { readonly run: unknown; readonly output: infer Schema }
      ? InputOf<Schema>
      : Node extends { readonly run: (...args: never[]) => infer Output }
        ? Awaited<Output>
        : unknown;

/** The output of a router: the node that it chose, and what the agent said to it. */
export interface Handoff {
  readonly handoff: string;
  readonly response?: string;
}
