// Scheduler: what happens next in a graph. It knows nodes, edges and rounds, and nothing of what nodes do. Every call is answered at
// once, and the answers depend only on which nodes ended how, never on the order in which they did (a join of "any" aside).
//   GraphScheduler-1. A node starts when every edge into it is decided and one is taken; with a join of "any", with the first that is.
//   GraphScheduler-2. An edge is dead when it was not taken, or when its source was skipped or is unreachable; deadness spreads.
//   GraphScheduler-3. Edges back are taken together, when nothing is left to do among the nodes of their loops (Shape-2). Then every node
//       that they lead to begins its next round. Edges from outside the round stay as they are and start nothing again.
//   GraphScheduler-4. While a node waits, one that leads to it waits or works, so a graph always comes to its end.

import type { PlannedEdge } from "./edge.ts";
import type { PlannedNode } from "./plan.ts";
import type { LoopGroup, Shape } from "./shape.ts";

/** What is to be done, or happened. */
export type Effect =
  /** A node begins to work. */
  | { readonly type: "start"; readonly id: string; readonly round: number }
  /** No edge into it is taken any more. */
  | { readonly type: "pass"; readonly id: string; readonly round: number }
  /** In a round of its source. */
  | { readonly type: "take"; readonly edge: PlannedEdge; readonly round: number }
  /** Nodes begin again; their outputs are void. */
  | { readonly type: "round"; readonly ids: readonly string[] };

type NodeState = "waiting" | "working" | "done" | "skipped" | "passed";
type EdgeState = "open" | "taken" | "dead" | "stale";

export class Scheduler {
  readonly #shape: Shape;
  readonly #joins: ReadonlyMap<string, Pick<PlannedNode, "join">>;
  readonly #states = new Map<string, NodeState>();
  readonly #rounds = new Map<string, number>();
  readonly #edges = new Map<PlannedEdge, EdgeState>();
  /** How often edges back were taken. */
  readonly #taken = new Map<PlannedEdge, number>();
  /** Edges back that are to be taken (GraphScheduler-3). */
  readonly #pending = new Set<PlannedEdge>();
  /** The nodes that an edge back has led to in their round. */
  readonly #returned = new Set<string>();
  #effects: Effect[] = [];

  constructor(shape: Shape, nodes: ReadonlyMap<string, Pick<PlannedNode, "join">>) {
    this.#shape = shape;
    this.#joins = nodes;
    for (const id of shape.nodeIds) {
      this.#states.set(id, "waiting");
      this.#rounds.set(id, 1);
    }
    for (const edges of shape.out.values()) for (const edge of edges) this.#edges.set(edge, "open");
  }

  /** What comes first. */
  begin(): Effect[] {
    return this.#act(() => {
      for (const edge of this.#shape.out.get("start") ?? []) this.#decide(edge, true);
    });
  }

  /** A node has done its work; `holds` tells of its edges in their order, "otherwise" left out. */
  completed(id: string, holds: (edge: PlannedEdge) => boolean): Effect[] {
    return this.#act(() => {
      this.#states.set(id, "done");
      const { out, back } = this.#shape;
      const edges = [...(out.get(id) ?? []), ...(back.get(id) ?? [])];
      const usable = edges.filter((edge) => (this.#taken.get(edge) ?? 0) < (edge.max ?? 1));
      const chosen = new Set(usable.filter((edge) => edge.when !== "otherwise" && holds(edge)));
      if (chosen.size === 0) for (const edge of usable) if (edge.when === "otherwise") chosen.add(edge);
      for (const edge of edges) {
        if (edge.max === undefined) this.#decide(edge, chosen.has(edge));
        else if (chosen.has(edge)) this.#pending.add(edge);
      }
    });
  }

  /** A node counts as skipped: it failed, or was denied. */
  skipped(id: string): Effect[] {
    return this.#act(() => {
      this.#states.set(id, "skipped");
      for (const edge of this.#shape.out.get(id) ?? []) this.#decide(edge, false);
    });
  }

  /** Whether a node waits or works, in its present round. */
  isOpen(id: string): boolean {
    const state = this.#states.get(id);
    return state === "waiting" || state === "working";
  }

  round(id: string): number {
    return this.#rounds.get(id)!;
  }

  /** The edges to the end that are taken. */
  get ends(): PlannedEdge[] {
    return (this.#shape.into.get("end") ?? []).filter((edge) => this.#edges.get(edge) === "taken");
  }

  #act(change: () => void): Effect[] {
    this.#effects = [];
    change();
    for (const group of this.#shape.groups) this.#goRound(group);
    return this.#effects;
  }

  #decide(edge: PlannedEdge, isTaken: boolean): void {
    // By a list, not by calls: deadness may spread further than a stack is deep.
    const decided: [PlannedEdge, boolean][] = [[edge, isTaken]];
    for (let next = decided.shift(); next; next = decided.shift()) {
      const [{ to }, isLive] = next;
      this.#edges.set(next[0], isLive ? "taken" : "dead");
      if (isLive) this.#take(next[0]);
      if (to !== "end" && this.#look(to) === "passed") {
        for (const each of this.#shape.out.get(to) ?? []) decided.push([each, false]);
      }
    }
  }

  #take(edge: PlannedEdge): void {
    this.#effects.push({ type: "take", edge, round: this.#rounds.get(edge.from) ?? 1 });
  }

  /** Starts a node that can start, and passes one that never will (GraphScheduler-1, GraphScheduler-2). */
  #look(id: string): NodeState {
    if (this.#states.get(id) !== "waiting") return "waiting";
    const into = this.#shape.into.get(id) ?? [];
    const isDecided = into.every((edge) => this.#edges.get(edge) !== "open");
    if (!isDecided && this.#joins.get(id)!.join === "all") return "waiting";
    const isLed = this.#returned.has(id) || into.some((edge) => this.#edges.get(edge) === "taken");
    if (!isLed && !isDecided) return "waiting";
    const state = isLed ? "working" : "passed";
    this.#states.set(id, state);
    this.#effects.push({ type: isLed ? "start" : "pass", id, round: this.#rounds.get(id)! });
    return state;
  }

  /** GraphScheduler-3. */
  #goRound({ edges, nodes }: LoopGroup): void {
    const pending = edges.filter((edge) => this.#pending.has(edge));
    if (pending.length === 0 || [...nodes].some((id) => this.isOpen(id) || this.#isAwaited(id))) return;
    const begun = new Set(pending.flatMap(({ to }) => [...this.#shape.after.get(to)!]));
    const ids = this.#shape.nodeIds.filter((id) => begun.has(id));
    for (const edge of pending) {
      this.#pending.delete(edge);
      this.#taken.set(edge, (this.#taken.get(edge) ?? 0) + 1);
      this.#take(edge);
    }
    this.#effects.push({ type: "round", ids });
    for (const id of ids) this.#beginAgain(id, begun);
    const targets = new Set(pending.map(({ to }) => to));
    for (const id of targets) this.#returned.add(id);
    for (const id of targets) this.#look(id);
  }

  /** Whether an edge into a node is still to be decided, also when the node did not wait for it. */
  #isAwaited(id: string): boolean {
    return (this.#shape.into.get(id) ?? []).some((edge) => this.#edges.get(edge) === "open");
  }

  #beginAgain(id: string, begun: ReadonlySet<string>): void {
    this.#states.set(id, "waiting");
    this.#rounds.set(id, this.#rounds.get(id)! + 1);
    this.#returned.delete(id);
    for (const edge of this.#shape.into.get(id) ?? []) this.#edges.set(edge, begun.has(edge.from) ? "open" : "stale");
    for (const edge of this.#shape.out.get(id) ?? []) this.#edges.set(edge, "open");
  }
}
