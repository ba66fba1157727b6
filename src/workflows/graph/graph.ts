// Graphs: workflows that are data. A graph is checked when it is built, and runs as the function of a workflow.

import type { JsonObject } from "../../base/json.ts";
import type { InputOf } from "../../tools/index.ts";
import type { FlowSchema, Workflow } from "../port.ts";
import type { NamedFunction } from "./condition.ts";
import type {
  AgentNode,
  FunctionNode,
  GraphBindings,
  GraphDefinition,
  GraphEdge,
  GraphNode,
  GraphSettings,
  GraphValues,
  NodeOutput,
  WorkflowNode,
} from "./definition.ts";
import { definitionFromJson, planToJson } from "./json.ts";
import { type DrawnStep, drawGraph } from "./mermaid.ts";
import { readGraph } from "./read-graph.ts";
import { runGraph } from "./run.ts";
import { digestOf, refusalOf } from "./versions.ts";

/** A workflow that is data: it can be stored, compared and drawn. */
export interface Graph<Input = unknown, Output = unknown> extends Workflow<Input, Output> {
  /** The definition as JSON; functions, patterns, agents and workflows stand in it by their names. */
  readonly toJSON: () => JsonObject;
  /** What those names stand for: what `graph.fromJSON` needs to make the same graph again. */
  readonly bindings: Required<GraphBindings>;
  /** The graph as a Mermaid flowchart. */
  readonly toMermaid: (options?: DrawOptions) => string;
}

/** Options of `toMermaid`. */
export interface DrawOptions {
  /** The steps of an execution: what became of the nodes is drawn as classes. */
  readonly execution?: readonly DrawnStep[];
}

type Input<Schema> = unknown extends Schema ? unknown : InputOf<Schema>;

/** What nodes give. Of a node whose function the compiler has to look into, only the schema of its output is known. */
type Outputs<Nodes, Schemas> = {
  readonly [Id in keyof Nodes]: unknown extends Nodes[Id]
    ? Id extends keyof Schemas
      ? unknown extends Schemas[Id]
        ? unknown
        : InputOf<Schemas[Id]>
      : unknown
    : NodeOutput<Nodes[Id]>;
};

type NodeKey = keyof AgentNode | keyof FunctionNode | keyof WorkflowNode;
type NoOtherKeys<Node> = { readonly [Key in Exclude<keyof Node, NodeKey>]: never };

type Values<Nodes, Schemas, Schema> = GraphValues<Input<Schema>, Outputs<Nodes, Schemas>>;

/** A graph as its author writes it. */
export interface TypedDefinition<Nodes, Schemas, Schema, Result> extends Omit<GraphSettings, "input">, GraphBindings {
  /** Validates the input of an execution. */
  readonly input?: Schema;
  /** Nodes by their ids: each has `agent`, `run` or `workflow`. */
  readonly nodes: {
    readonly [Id in keyof Nodes]: Nodes[Id] & GraphNode<Values<Nodes, Schemas, Schema>> & NoOtherKeys<Nodes[Id]>;
  } & { readonly [Id in keyof Schemas]: { readonly output?: Schemas[Id] } };
  /** Without an edge from "start" or to "end", nodes that nothing leads to come first, and those that lead nowhere last. */
  readonly edges: readonly GraphEdge<Extract<keyof Nodes, string>, Values<Nodes, Schemas, Schema>>[];
  /** What an execution gives: a template or a function (default: the output of the node that leads to the end). */
  readonly output?: string | NamedFunction | ((values: Values<Nodes, Schemas, Schema>) => Result);
}

function define<
  const Nodes extends Readonly<Record<string, unknown>>,
  Schemas extends Readonly<Record<string, unknown>>,
  Schema extends FlowSchema = FlowSchema,
  Result = unknown,
>(name: string, definition: TypedDefinition<Nodes, Schemas, Schema, Result>): Graph<Input<Schema>, Result> {
  return build(name, definition as unknown as GraphDefinition) as Graph<Input<Schema>, Result>;
}

function fromJSON(json: unknown, bindings: GraphBindings = {}): Graph {
  const { name, definition } = definitionFromJson(json);
  return build(name, { ...(definition as unknown as GraphDefinition), ...bindings });
}

/**
 * Defines a workflow as data: nodes, and edges with conditions. Whatever is wrong with it is refused at once.
 *
 * @example
 * const triage = graph("triage", {
 *   input: z.object({ text: z.string() }),
 *   nodes: {
 *     classify: { agent: classifier, output: z.object({ intent: z.string() }) },
 *     billing: { agent: billing, prompt: "{{input.text}}" },
 *     other: { agent: helper, prompt: "{{input.text}}" },
 *   },
 *   edges: [
 *     ["start", "classify"],
 *     ["classify", "billing", { field: "intent", is: "billing" }],
 *     ["classify", "other", "otherwise"],
 *   ],
 * });
 */
export const graph = Object.assign(define, {
  /** Makes a graph of its JSON. Functions, patterns, agents and workflows are found by their names; an agent that is not is a stored one. */
  fromJSON,
});

/** Whether a workflow is a graph. */
export function isGraph(workflow: unknown): workflow is Graph {
  const { toJSON, toMermaid } = Object(workflow) as Partial<Graph>;
  return typeof toJSON === "function" && typeof toMermaid === "function";
}

function build(name: string, definition: GraphDefinition & GraphBindings): Graph {
  const { plan, bindings } = readGraph(name, definition);
  return Object.freeze({
    name,
    options: plan.options,
    digest: digestOf(plan),
    agents: [...plan.nodes.values()].flatMap((node) => (node.kind === "agent" ? [node.agent.code] : [])),
    run: (flow, input) => runGraph(plan, flow, input),
    toJSON: () => planToJson(plan, true),
    toMermaid: ({ execution }: DrawOptions = {}) => drawGraph(plan, execution),
    bindings: bindings.used(),
    refuses: (recorded) => refusalOf(plan, recorded),
  } as Graph);
}
