// A graph as a Mermaid flowchart, with the states of an execution as classes.

import { describeWhen, type PlannedEdge } from "./edge.ts";
import type { GraphPlan, PlannedNode } from "./plan.ts";

/** What became of a node in an execution. */
export type NodeState = "waiting" | "working" | "asking" | "done" | "failed" | "skipped";

const styles: Readonly<Record<NodeState, string>> = {
  waiting: "stroke-dasharray: 4 4",
  working: "fill:#dbeafe,stroke:#1d4ed8",
  asking: "fill:#fef3c7,stroke:#b45309",
  done: "fill:#dcfce7,stroke:#15803d",
  failed: "fill:#fee2e2,stroke:#b91c1c",
  skipped: "fill:#f3f4f6,stroke:#9ca3af,color:#6b7280",
};

export function drawGraph(plan: GraphPlan, states?: ReadonlyMap<string, NodeState>): string {
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
  if (states) lines.push(...classLines(states, names));
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

function classLines(states: ReadonlyMap<string, NodeState>, names: ReadonlyMap<string, string>): string[] {
  const lines = Object.entries(styles).map(([state, style]) => `  classDef ${state} ${style}`);
  for (const [id, state] of states) if (names.has(id)) lines.push(`  class ${names.get(id)} ${state}`);
  return lines;
}

const longest = 80;

/** Text that can't end its quotes, be markup, or break the line. */
function quoted(text: string): string {
  const short = text.length > longest ? `${text.slice(0, longest - 1)}…` : text;
  const safe = short.replace(/[^\p{L}\p{M}\p{N} _.,:!?()[\]+*/=…→-]/gu, (sign) => `#${sign.codePointAt(0)};`);
  return `"${safe}"`;
}
