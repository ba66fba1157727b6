// Nodes as their author wrote them, checked one by one: keys, kinds and values. What depends on other nodes comes later
// (check.ts).

import {
  anything,
  checkOptions,
  isObject,
  type OptionCheck,
  type OptionTable,
  object,
  oneOf,
  optionTable,
  text,
} from "../../base/options.ts";
import type { FlowSchema, StepRetry } from "../port.ts";
import type { Bindings } from "./bindings.ts";
import { isNamed, readCondition } from "./condition.ts";
import type { AgentNode, Approval, FunctionNode, GraphNode, OnNodeError, Router, WorkflowNode } from "./definition.ts";
import type { Judge } from "./edge.ts";
import type { PlannedApproval, PlannedNode, Source } from "./plan.ts";
import { nodePlace, type Place, refuse } from "./refuse.ts";
import { readTemplate } from "./template.ts";

/** A setting that is a whole number of at least this. */
function atLeast(least: number): OptionCheck {
  const fits = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= least;
  return { fits, wanted: `an integer ≥ ${least}` };
}

const schema: OptionCheck = {
  fits: (value) => typeof value === "function" || isObject(value),
  wanted: "a schema",
};
const shared = { approve: object, onError: anything, join: oneOf("all", "any") };
const fed = { prompt: text, input: anything };
const tried = { retry: object, timeoutMs: atLeast(1) };

const tables: Readonly<Record<PlannedNode["kind"], OptionTable>> = {
  agent: optionTable<AgentNode>({
    ...shared,
    ...fed,
    ...tried,
    agent: anything,
    output: schema,
    router: object,
    instructions: text,
    conversation: oneOf("none", "shared", "perNode", "forkPerNode"),
  }),
  function: optionTable<FunctionNode>({
    ...shared,
    ...tried,
    run: anything,
    output: schema,
    effect: oneOf("retry", "once"),
    reconcile: anything,
  }),
  workflow: optionTable<WorkflowNode>({ ...shared, ...fed, workflow: anything }),
};
const retryTable = optionTable<StepRetry>({
  attempts: atLeast(1),
  delayMs: { fits: (value) => Number.isFinite(value) && (value as number) >= 0, wanted: "a number ≥ 0" },
  factor: { fits: (value) => Number.isFinite(value) && (value as number) >= 1, wanted: "a number ≥ 1" },
  when: anything,
});
const approvalTable = optionTable<Approval>({
  when: anything,
  message: text,
  timeoutMs: atLeast(1),
  onTimeout: oneOf("fail", "approve", "wait"),
});
const routerTable = optionTable<Router>({ to: object, otherwise: text });
const fallbackTable = optionTable<Exclude<OnNodeError, string>>({ fallback: text });

/** Ids are parts of keys, templates and names of branches. */
const idForm = /^[\p{L}\p{N}_][\p{L}\p{M}\p{N}_-]{0,63}$/u;
const reserved = new Set(["start", "end", "__proto__", "constructor", "prototype"]);

export function readNode(graph: string, id: string, given: unknown, bindings: Bindings): PlannedNode {
  const place = nodePlace(graph, id.slice(0, 64));
  if (reserved.has(id)) throw refuse(place, `"${id}" can't be the id of a node`);
  if (!idForm.test(id)) throw refuse(place, "an id has 1 to 64 letters, digits, - and _, and does not begin with -");
  if (!isObject(given)) throw refuse(place, "it must be an object with `agent`, `run` or `workflow`");
  const kind = kindOf(given, place);
  checkOptions(capital(place), given, tables[kind], `${id}.`);
  const node = given as GraphNode & Record<string, unknown>;
  return { ...commonOf(node, id, place, bindings), ...ownOf(kind, node, id, place, bindings) } as PlannedNode;
}

function capital(place: Place): string {
  return place.charAt(0).toUpperCase() + place.slice(1);
}

function kindOf(given: Record<string, unknown>, place: Place): PlannedNode["kind"] {
  const kinds = { agent: "agent", run: "function", workflow: "workflow" } as const;
  const [first, second] = (Object.keys(kinds) as (keyof typeof kinds)[]).filter((key) => given[key] !== undefined);
  if (first === undefined) throw refuse(place, "it must have `agent`, `run` or `workflow`");
  if (second !== undefined) throw refuse(place, `it has \`${first}\` and \`${second}\`; a node does one thing`);
  return kinds[first];
}

function commonOf(node: GraphNode & Record<string, unknown>, id: string, place: Place, bindings: Bindings) {
  const { approve, join = "all", onError = "stop", timeoutMs, retry } = node as FunctionNode;
  const input = inputOf(node, id, place, bindings);
  return {
    id,
    join,
    onError: readOnError(onError, place),
    ...(input && { input }),
    ...(approve && { approve: readApproval(approve, id, place, bindings) }),
    ...(retry && { retry: readRetry(retry as unknown as Record<string, unknown>, id, place, bindings) }),
    ...(timeoutMs !== undefined && { timeoutMs }),
  };
}

function ownOf(
  kind: PlannedNode["kind"],
  node: GraphNode & Record<string, unknown>,
  id: string,
  place: Place,
  bindings: Bindings,
) {
  if (kind === "workflow") return { kind, workflow: bindings.workflow(node.workflow, place) };
  if (kind === "function") {
    const { run, output, effect, reconcile } = node as FunctionNode;
    return {
      kind,
      run: bindings.code(run, id, place),
      ...(output && { output: output as FlowSchema }),
      ...(effect && { effect }),
      ...(reconcile && { reconcile: bindings.code(reconcile, `${id}.reconcile`, place) }),
    };
  }
  const { agent, output, router, instructions, conversation } = node as AgentNode;
  if (router && output) throw refuse(place, "a router's output is its choice, so it can't have `output`");
  return {
    kind,
    agent: bindings.agent(agent, id, place),
    ...(output && { output }),
    ...(router && { router: readRouter(router, place) }),
    ...(instructions !== undefined && { instructions }),
    ...(conversation && { conversation }),
  };
}

function inputOf(node: Record<string, unknown>, id: string, place: Place, bindings: Bindings): Source | undefined {
  const { prompt, input } = node;
  if (prompt !== undefined && input !== undefined)
    throw refuse(place, "it has `prompt` and `input`; one of them is enough");
  if (typeof prompt === "string") return readTemplate(prompt, place);
  return input === undefined ? undefined : bindings.code(input, `${id}.input`, place);
}

function readOnError(given: unknown, place: Place): OnNodeError {
  if (given === "stop" || given === "skip" || given === "isolate") return given;
  if (!isObject(given)) throw refuse(place, '`onError` must be "stop", "skip", "isolate" or { fallback: node }');
  checkOptions(`\`onError\` in ${place}`, given, fallbackTable, "onError.");
  if (typeof given.fallback !== "string") throw refuse(place, "`onError` must name a node in `fallback`");
  return { fallback: given.fallback };
}

function readApproval(given: Approval, id: string, place: Place, bindings: Bindings): PlannedApproval {
  checkOptions(`\`approve\` in ${place}`, given, approvalTable, "approve.");
  const { when, onTimeout, timeoutMs, ...rest } = given;
  if (onTimeout === "wait" && timeoutMs !== undefined) {
    throw refuse(place, '`onTimeout: "wait"` waits as long as it takes, so `timeoutMs` has no meaning');
  }
  if (onTimeout !== undefined && onTimeout !== "wait" && timeoutMs === undefined) {
    throw refuse(place, "`onTimeout` needs `timeoutMs`");
  }
  return {
    ...rest,
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(onTimeout && { onTimeout }),
    ...(when && { when: readJudge(when, `${id}.approve`, place, bindings) }),
  };
}

/** A condition or a function; functions and patterns are named by their place. */
export function readJudge(given: unknown, name: string, place: Place, bindings: Bindings): Judge {
  if (typeof given === "function" || isNamed(given)) return bindings.code(given, name, place);
  let patterns = 0;
  const pattern = (found: unknown) => {
    patterns++;
    return bindings.pattern(found, `${name}.matches${patterns === 1 ? "" : patterns}`, place);
  };
  return readCondition(given, place, pattern);
}

function readRetry(given: Record<string, unknown>, id: string, place: Place, bindings: Bindings) {
  checkOptions(`\`retry\` in ${place}`, given, retryTable, "retry.");
  if (given.attempts === undefined) throw refuse(place, "`retry` needs `attempts`");
  const { when, ...rest } = given;
  return { ...rest, ...(when !== undefined && { when: bindings.code(when, `${id}.retry`, place) }) };
}

function readRouter(given: Router, place: Place): Router {
  checkOptions(`\`router\` in ${place}`, given, routerTable, "router.");
  const { to, otherwise } = given;
  if (!isObject(to) || Object.keys(to).length === 0) throw refuse(place, "`router` needs nodes to choose from in `to`");
  for (const [node, words] of Object.entries(to)) {
    if (typeof words !== "string" || words === "") {
      throw refuse(place, `\`router.to.${node.slice(0, 64)}\` must say in a few words when to choose it`);
    }
    // The names of tools that all providers take.
    if (!/^[A-Za-z0-9_-]{1,53}$/.test(node)) {
      const why = "it must have 1 to 53 letters of the English alphabet, digits, - and _";
      throw refuse(place, `the handoff target "${node.slice(0, 64)}" makes no name of a tool; ${why}`);
    }
  }
  return { to: { ...to }, ...(otherwise !== undefined && { otherwise }) };
}
