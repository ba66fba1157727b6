// The interpreter: runs a graph as the function of a workflow. The scheduler says what comes next; nodes do it side by side; what is
// recorded makes a second pass go the same way.
//   GraphRun-1. Nothing of it is kept but the steps of the flow: after a crash it begins again and finds what is recorded.
//   GraphRun-2. The first failure that no node takes care of ends the graph; the nodes that still work are the flow's to stop.

import { inSlots } from "../../base/slots.ts";
import type { Flow } from "../port.ts";
import { type GraphEvent, showLive } from "../show.ts";
import type { GraphValues } from "./definition.ts";
import { describeWhen, isNamedCode, type PlannedEdge } from "./edge.ts";
import { edgeKey, nodeKey } from "./keys.ts";
import { LayerWatch } from "./layers.ts";
import { inputOf, judge, type NodeWork, type Outcome, workOn } from "./node-work.ts";
import { Outputs } from "./outputs.ts";
import type { GraphPlan, PlannedNode } from "./plan.ts";
import { type Effect, Scheduler } from "./scheduler.ts";
import { nodesAbove } from "./shape.ts";
import { fillTemplate } from "./template.ts";

/** A node that has come to its end, with the edges that hold. */
interface Ended {
  readonly id: string;
  readonly key: string;
  readonly outcome: Outcome;
  readonly held: ReadonlySet<PlannedEdge>;
}

export async function runGraph(plan: GraphPlan, flow: Flow, input: unknown): Promise<unknown> {
  const run = new GraphRun(plan, flow, input);
  return run.toEnd();
}

class GraphRun {
  readonly #plan: GraphPlan;
  readonly #flow: Flow;
  readonly #scheduler: Scheduler;
  readonly #outputs: Outputs;
  readonly #work: NodeWork;
  readonly #layers: LayerWatch;
  readonly #input: unknown;
  readonly #working = new Map<string, Promise<Ended>>();

  constructor(plan: GraphPlan, flow: Flow, input: unknown) {
    const { nodes, shape, options } = plan;
    this.#plan = plan;
    this.#flow = flow;
    this.#input = input;
    this.#scheduler = new Scheduler(shape, nodes);
    this.#outputs = new Outputs(shape, input);
    this.#work = { flow, nodes, inPlace: inSlots(options.parallel ?? 8) };
    this.#layers = new LayerWatch(shape, (id) => this.#scheduler.isOpen(id));
  }

  async toEnd(): Promise<unknown> {
    await this.#act(this.#scheduler.begin());
    while (this.#working.size > 0) {
      const ended = await Promise.race(this.#working.values());
      this.#working.delete(ended.id);
      await this.#act(await this.#finish(ended), ended.key);
    }
    return this.#result();
  }

  async #finish({ id, outcome, held }: Ended): Promise<Effect[]> {
    if (outcome.type === "done") {
      this.#outputs.set(id, outcome.output);
      return this.#scheduler.completed(id, (edge) => held.has(edge));
    }
    await this.#flow.skip(`${id}.skipped`, outcome.why);
    return this.#scheduler.skipped(id);
  }

  /** `after` is the key of the node that they follow from. */
  async #act(effects: readonly Effect[], after?: string): Promise<void> {
    const passed: Promise<void>[] = [];
    const started: string[] = [];
    for (const effect of effects) {
      if (effect.type === "take") showLive(this.#flow, edgeEvent(effect.edge, effect.round), after);
      else if (effect.type === "round") this.#outputs.beginRound(effect.ids);
      else if (effect.type === "pass") passed.push(this.#flow.skip(effect.id, "condition"));
      else {
        started.push(effect.id);
        this.#start(this.#plan.nodes.get(effect.id)!, effect.round);
      }
    }
    for (const change of this.#layers.look(started)) showLive(this.#flow, change, after);
    await Promise.all(passed);
  }

  #start(node: PlannedNode, round: number): void {
    const work = this.#runNode(node, round);
    // The race takes its failure, unless an earlier one has ended it.
    work.catch(() => {});
    this.#working.set(node.id, work);
  }

  async #runNode(node: PlannedNode, round: number): Promise<Ended> {
    const { id } = node;
    const key = nodeKey(id, round);
    const values = this.#outputs.seenBy(id);
    const input = await this.#inputOf(node, key, values);
    const outcome = await workOn(this.#work, { node, name: id, key, input, values });
    const held = outcome.type === "done" ? await this.#judge(id, round, values, outcome.output) : new Set<never>();
    return { id, key, outcome, held };
  }

  async #judge(id: string, round: number, { input, outputs }: GraphValues, output: unknown): Promise<Set<PlannedEdge>> {
    const { out, back } = this.#plan.shape;
    const values = { input, outputs: { ...outputs, [id]: output } };
    const held = new Set<PlannedEdge>();
    for (const edge of [...(out.get(id) ?? []), ...(back.get(id) ?? [])]) {
      if (edge.when === "otherwise") continue;
      if (await judge(this.#flow, edge.when, edgeKey(edge, round), output, values)) held.add(edge);
    }
    return held;
  }

  /** What came in time for a join of "any" is recorded, because a second pass may be faster elsewhere. */
  async #inputOf(node: PlannedNode, key: string, values: GraphValues): Promise<unknown> {
    const [source] = (this.#plan.shape.into.get(node.id) ?? []).map(({ from }) => from);
    const given = source === undefined || source === "start" ? this.#input : this.#outputs.get(source);
    if (node.kind === "function" || !this.#isRaced(node.id)) return inputOf(node, values, given);
    const name = `${key}.input`;
    return this.#flow.step(name, () => inputOf(node, values, given) ?? null, { key: name });
  }

  #isRaced(id: string): boolean {
    const { nodes, shape } = this.#plan;
    return [id, ...nodesAbove(shape, id)].some((each) => nodes.get(each)!.join === "any");
  }

  #result(): unknown {
    const { output } = this.#plan;
    if (output && isNamedCode(output)) return output.code(this.#outputs.all());
    if (output) return fillTemplate(output, this.#outputs.all());
    const ids = this.#scheduler.ends.map(({ from }) => from);
    if (ids.length > 1) return Object.fromEntries(ids.map((id) => [id, this.#outputs.get(id)]));
    return ids[0] === undefined ? null : this.#outputs.get(ids[0]);
  }
}

function edgeEvent({ from, to, when }: PlannedEdge, round: number): GraphEvent {
  return { type: "edge-take", from, to, round, ...(when !== undefined && { condition: describeWhen(when) }) };
}
