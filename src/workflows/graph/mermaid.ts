// A graph as a Mermaid flowchart, with the states of an execution as classes.

import { describeWhen, type PlannedEdge } from "./edge.ts";
import { readKey } from "./keys.ts";
import type { GraphPlan, PlannedNode } from "./plan.ts";

/** A step of an execution, as its state has it. */
export interface DrawnStep {
  readonly key: string;
  readonly kind?: string;
  readonly status: "started" | "returned" | "failed" | "skipped";
}

type NodeState = "waiting" | "working" | "asking" | "done" | "failed" | "skipped";

const styles: Readonly<Record<NodeState, string>> = {
  waiting: "stroke-dasharray: 4 4",
  working: "fill:#dbeafe,stroke:#1d4ed8",
  asking: "fill:#fef3c7,stroke:#b45309",
  done: "fill:#dcfce7,stroke:#15803d",
  failed: "fill:#fee2e2,stroke:#b91c1c",
  skipped: "fill:#f3f4f6,stroke:#9ca3af,color:#6b7280",
};

/** With the steps of an execution, nodes have classes: what became of them in their last round. */
export function drawGraph(plan: GraphPlan, steps?: readonly DrawnStep[]): string {
  const names = new Map([...plan.nodes.keys()].map((id, i) => [id, `n${i}`]));
  names.set("start", "start_").set("end", "end_");
  const isEnded = plan.edges.some(({ to }) => to === "end");
  const lines = [
    "flowchart TD",
    '  start_(["start"])',
    ...[...plan.nodes.values()].map((node) => `  ${names.get(node.id)}${shapeOf(node)}`),
    ...(isEnded ? ['  end_(["end"])'] : []),
    ...plan.edges.map((edge) => `  ${lineOf(edge, names)}`),
    ...[...plan.nodes.values()].flatMap((node) => fallbackLine(node, names)),
  ];
  if (steps) lines.push(...classLines(statesOf(plan, steps), names));
  return `${lines.join("\n")}\n`;
}

function shapeOf(node: PlannedNode): string {
  const words = node.approve ? `${node.id} (approved)` : node.id;
  if (node.kind === "workflow") return `[[${quoted(words)}]]`;
  if (node.kind === "function") return `[/${quoted(words)}/]`;
  return node.router ? `{{${quoted(words)}}}` : `[${quoted(words)}]`;
}

function lineOf(edge: PlannedEdge, names: ReadonlyMap<string, string>): string {
  const bound = edge.max === undefined ? [] : [`at most ${edge.max} times`];
  const words = [...(edge.when === undefined ? [] : [describeWhen(edge.when)]), ...bound].join(", ");
  const arrow = edge.max === undefined ? "-->" : "-.->";
  return `${names.get(edge.from)} ${arrow}${words === "" ? "" : `|${quoted(words)}|`} ${names.get(edge.to)}`;
}

function fallbackLine({ id, onError }: PlannedNode, names: ReadonlyMap<string, string>): string[] {
  if (typeof onError !== "object") return [];
  return [`  ${names.get(id)} -.->|"if it fails"| ${names.get(onError.fallback)}`];
}

const words: Readonly<Record<DrawnStep["status"], NodeState>> = {
  started: "working",
  returned: "done",
  failed: "failed",
  skipped: "skipped",
};

function statesOf({ nodes }: GraphPlan, steps: readonly DrawnStep[]): Map<string, NodeState> {
  const states = new Map<string, NodeState>([...nodes.keys()].map((id) => [id, "waiting"]));
  for (const { key, kind, status } of steps) {
    const { id, fallback, rest, isInner } = readKey(key);
    if (!states.has(id)) continue;
    const at = fallback !== undefined && states.has(fallback) ? fallback : id;
    if (isInner) states.set(at, "working");
    else if (rest === "") states.set(at, words[status]);
    else if (rest === ".skipped") states.set(id, "skipped");
    else if (rest === ".approve" && kind === "ask") states.set(id, status === "started" ? "asking" : "done");
  }
  return states;
}

function classLines(states: ReadonlyMap<string, NodeState>, names: ReadonlyMap<string, string>): string[] {
  const lines = Object.entries(styles).map(([state, style]) => `  classDef ${state} ${style}`);
  for (const [id, state] of states) if (names.has(id)) lines.push(`  class ${names.get(id)} ${state}`);
  return lines;
}

const longest = 80;

/** The steps of an execution whose workflow is code: in order, those inside of others below them. */
export function drawSteps(steps: readonly DrawnStep[]): string {
  const names = new Map<string, string>();
  const lines = ["flowchart TD", '  start_(["start"])'];
  const classes: string[] = [];
  const last = new Map<string, string>();
  for (const { key, kind, status } of steps) {
    const known = names.get(key);
    const name = known ?? `s${names.size}`;
    names.set(key, name);
    const at = key.lastIndexOf("/");
    const [parent, own] = at < 0 ? ["", key] : [key.slice(0, at), key.slice(at + 1)];
    if (known === undefined) {
      lines.push(`  ${name}[${quoted(kind === undefined || kind === "step" ? own : `${own} (${kind})`)}]`);
      lines.push(`  ${last.get(parent) ?? names.get(parent) ?? "start_"} --> ${name}`);
    }
    last.set(parent, name);
    classes.push(`  class ${name} ${kind === "ask" && status === "started" ? "asking" : words[status]}`);
  }
  const used = Object.entries(styles).map(([state, style]) => `  classDef ${state} ${style}`);
  return `${[...lines, ...used, ...classes].join("\n")}\n`;
}

/** Text that can't end its quotes, be markup, or break the line. */
function quoted(text: string): string {
  const short = text.length > longest ? `${text.slice(0, longest - 1)}…` : text;
  const safe = short.replace(/[^\p{L}\p{M}\p{N} _.,:!?()[\]+*/=…→-]/gu, (sign) => `#${sign.codePointAt(0)};`);
  return `"${safe}"`;
}
