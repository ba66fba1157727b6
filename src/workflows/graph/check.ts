// What can only be checked on the whole graph: what nodes and edges say of other nodes.

import { partsOf, type ReadCondition } from "./condition.ts";
import { isNamedCode, type Judge } from "./edge.ts";
import type { GraphPlan, PlannedNode } from "./plan.ts";
import { isFallback } from "./read-edges.ts";
import { edgePlace, nodePlace, type Place, refuse } from "./refuse.ts";
import { fieldProblem, unionNames } from "./schemas.ts";
import { nodesBefore } from "./shape.ts";
import { nodesIn, type Template } from "./template.ts";

/** Keys of steps have at most 240 characters; rounds and parts of a node are in them, too. */
const longestKey = 200;

export function checkPlan(plan: GraphPlan): void {
  const { name, nodes, edges, output } = plan;
  for (const node of nodes.values()) {
    checkFallback(plan, node);
    checkRouter(plan, node);
    checkInput(plan, node);
    if (node.approve?.when) checkJudge(node.approve.when, node, nodePlace(name, node.id));
  }
  for (const edge of edges) {
    const source = nodes.get(edge.from);
    if (source && edge.when !== undefined && edge.when !== "otherwise") {
      checkJudge(edge.when, source, edgePlace(name, edge));
    }
  }
  if (output && !isNamedCode(output))
    checkTemplate(plan, output, `the graph "${name}", \`output\``, new Set(nodes.keys()));
}

/** A fallback has no edges, and fallbacks of fallbacks come to an end. */
function checkFallback({ name, nodes, edges }: GraphPlan, node: PlannedNode): void {
  const place = nodePlace(name, node.id);
  const seen = new Set([node.id]);
  let length = node.id.length;
  for (let { onError } = node; typeof onError === "object"; ) {
    const { fallback } = onError;
    const next = nodes.get(fallback);
    if (!next) throw refuse(place, `its fallback "${fallback.slice(0, 64)}" is not a node`);
    if (seen.has(fallback)) throw refuse(place, `its fallbacks go in a circle through "${fallback}"`);
    if (!isFallback(nodes, fallback, edges)) {
      throw refuse(
        place,
        `its fallback "${fallback}" has edges of its own; a fallback only takes another node's place`,
      );
    }
    seen.add(fallback);
    length += fallback.length + ".fallback.".length;
    if (length > longestKey) throw refuse(place, "its fallbacks are too many for the key of a step");
    onError = next.onError;
  }
}

function checkRouter({ name, nodes, edges }: GraphPlan, node: PlannedNode): void {
  if (node.kind !== "agent" || !node.router) return;
  const place = nodePlace(name, node.id);
  const { to, otherwise } = node.router;
  for (const target of [...Object.keys(to), ...(otherwise === undefined ? [] : [otherwise])]) {
    if (!nodes.has(target)) throw refuse(place, `its handoff target "${target.slice(0, 64)}" is not a node`);
    const edge = edges.find((each) => each.from === node.id && each.to === target)!;
    if (edge.when === undefined) {
      const why = `it would be taken whatever the router chose; leave it out, or give it { handoff: "${target}" }`;
      throw refuse(edgePlace(name, edge), why);
    }
  }
}

/** An agent or a workflow works with something: what that is must be said where several nodes lead to it. */
function checkInput(plan: GraphPlan, node: PlannedNode): void {
  const place = nodePlace(plan.name, node.id);
  const { input } = node;
  if (input && !isNamedCode(input)) checkTemplate(plan, input, place, allowedIn(plan, node.id));
  if (input || node.kind === "function") return;
  const sources = (plan.shape.into.get(node.id) ?? []).map(({ from }) => `"${from}"`);
  if (sources.length < 2) return;
  throw refuse(
    place,
    `${sources.join(", ")} lead here, so it needs a \`prompt\` or an \`input\` that says what it works with`,
  );
}

/** A fallback runs in the places of others, so it sees what they see. */
function allowedIn({ nodes, shape, edges }: GraphPlan, id: string): Set<string> {
  if (!isFallback(nodes, id, edges)) return nodesBefore(shape, id);
  const users = [...nodes.values()].filter(({ onError }) => typeof onError === "object" && onError.fallback === id);
  const allowed = users.map((user) => allowedIn({ nodes, shape, edges } as GraphPlan, user.id));
  return new Set([...nodes.keys()].filter((each) => allowed.every((set) => set.has(each))));
}

function checkTemplate({ nodes }: GraphPlan, template: Template, place: Place, allowed: ReadonlySet<string>): void {
  for (const id of nodesIn(template)) {
    if (!nodes.has(id)) throw refuse(place, `its template names "${id}", which is not a node`);
    if (allowed.has(id)) continue;
    throw refuse(place, `its template names "${id}", which does not come before it, so its output may not be there`);
  }
  for (const piece of template.pieces) {
    if (typeof piece === "string" || piece.node === undefined || piece.path === undefined) continue;
    const problem = fieldProblem(nodes.get(piece.node)!, piece.path);
    if (problem !== undefined) throw refuse(place, `its template names the field "${piece.path}", but ${problem}`);
  }
}

function checkJudge(judge: Judge, source: PlannedNode, place: Place): void {
  if (isNamedCode(judge)) return;
  for (const part of partsOf(judge as ReadCondition)) {
    if ("handoff" in part) checkHandoff(part.handoff, source, place);
    else if ("type" in part) checkType(part.type, source, place);
    else if ("field" in part && part.field !== undefined) {
      const problem = fieldProblem(source, part.field);
      if (problem !== undefined) throw refuse(place, `its condition names the field "${part.field}", but ${problem}`);
    }
  }
}

function checkHandoff(target: string, source: PlannedNode, place: Place): void {
  const { to = {}, otherwise } = (source.kind === "agent" && source.router) || {};
  if (Object.hasOwn(to, target) || otherwise === target) return;
  throw refuse(place, `"${source.id}" is no router that could choose "${target.slice(0, 64)}"`);
}

function checkType(type: string, source: PlannedNode, place: Place): void {
  const names = source.kind === "agent" ? unionNames(source.output) : undefined;
  if (source.kind !== "agent" || names?.includes(type)) return;
  const what = names ? `its types are ${names.map((each) => `"${each}"`).join(", ")}` : "its output is no union";
  throw refuse(place, `its condition wants the type "${type.slice(0, 64)}" of "${source.id}", but ${what}`);
}
