// The reference interpreter of graphs: one node at a time, in any order, until nothing is left; then all edges back at once.

import type { JsonObject } from "../../src/index.ts";

export type Behaviour = (id: string, round: number) => { output: JsonObject } | { fails: true };
interface Edge {
  from: string;
  to: string;
  when?: JsonObject | "otherwise";
  max?: number;
}
interface Node {
  id: string;
  join: "all" | "any";
  onError: "stop" | "skip" | "isolate";
}
type Values = Map<string, JsonObject>;

function holds(when: JsonObject | undefined, output: JsonObject): boolean {
  if (!when) return true;
  if (when.none) return !(when.none as JsonObject[]).some((each) => holds(each, output));
  const value = output[when.field as string];
  if ("exists" in when) return (value !== undefined) === when.exists;
  if ("oneOf" in when) return (when.oneOf as unknown[]).includes(value);
  if ("above" in when) return typeof value === "number" && value > (when.above as number);
  return typeof value === "number" && value < (when.below as number);
}

export function reference({ nodes, edges }: { nodes: Node[]; edges: Edge[] }, behave: Behaviour) {
  const all: Edge[] = [...edges];
  for (const { id } of nodes)
    if (!edges.some((edge) => edge.from === id && edge.max === undefined)) all.push({ from: id, to: "end" });
  const forward = all.filter(({ max }) => max === undefined);
  const reach = (id: string): Set<string> =>
    new Set([id, ...forward.filter((edge) => edge.from === id).flatMap((edge) => [...reach(edge.to)])]);
  const before = (id: string, found = new Set<string>()): Set<string> => {
    for (const { from, to } of all)
      if (to === id && from !== "start" && !found.has(from)) before(from, found.add(from));
    return found;
  };
  const state = new Map<Edge, "taken" | "dead" | "old">(
    forward.flatMap((edge) => (edge.from === "start" ? [[edge, "taken"]] : [])),
  );
  const closed = new Set<string>();
  const round = new Map(nodes.map(({ id }) => [id, 1]));
  const led = new Set<string>();
  const counts = new Map<Edge, number>();
  let pending = new Set<Edge>();
  let values: Values = new Map();
  const past = new Map<string, Values>();
  const trace = {
    ran: [] as string[],
    skipped: [] as string[],
    seen: new Map<string, string>(),
    output: null as unknown,
    taken: forward.filter(({ from }) => from === "start").map(({ to }) => `start#1->${to}`),
  };
  const keyOf = (id: string) => (round.get(id) === 1 ? id : `${id}#${round.get(id)}`);
  const take = (edge: Edge) => trace.taken.push(`${edge.from}#${round.get(edge.from)}->${edge.to}`);
  const close = (id: string, output?: JsonObject) => {
    closed.add(id);
    const usable = all.filter((edge) => edge.from === id && (counts.get(edge) ?? 0) < (edge.max ?? 1));
    let chosen = output ? usable.filter(({ when }) => when !== "otherwise" && holds(when, output)) : [];
    if (output && chosen.length === 0) chosen = usable.filter(({ when }) => when === "otherwise");
    for (const edge of forward) if (edge.from === id) state.set(edge, chosen.includes(edge) ? "taken" : "dead");
    for (const edge of chosen)
      if (edge.max === undefined) take(edge);
      else pending.add(edge);
  };
  for (;;) {
    const next = nodes.find(({ id }) => !closed.has(id) && forward.every((edge) => edge.to !== id || state.has(edge)));
    if (next) {
      const { id, onError } = next;
      if (!led.has(id) && !forward.some((edge) => edge.to === id && state.get(edge) === "taken")) {
        trace.skipped.push(`${keyOf(id)}: condition`);
        close(id);
        continue;
      }
      const above = nodes.filter((node) => node.id !== id && reach(node.id).has(id)).map((node) => node.id);
      const sees = [...before(id)].sort().flatMap((each) => {
        const value = (above.includes(each) ? values : past.get(id))?.get(each);
        return value ? [[each, value] as const] : [];
      });
      trace.seen.set(keyOf(id), JSON.stringify(Object.fromEntries(sees)));
      trace.ran.push(keyOf(id));
      const does = behave(id, round.get(id)!);
      if ("fails" in does && onError === "stop") return { ...trace, output: "stopped" as unknown };
      if ("fails" in does && onError === "skip") {
        const count = trace.skipped.filter((each) => each.startsWith(`${id}.skipped`)).length + 1;
        trace.skipped.push(`${id}.skipped${count === 1 ? "" : `#${count}`}: failed: ${id} fails`);
      }
      const output =
        "output" in does ? does.output : onError === "isolate" ? { error: { message: `${id} fails` } } : undefined;
      if (output) values.set(id, output);
      close(id, output);
    } else if (pending.size > 0) {
      const again = new Set([...pending].flatMap(({ to }) => [...reach(to)].filter((id) => id !== "end")));
      for (const edge of pending) {
        take(edge);
        counts.set(edge, (counts.get(edge) ?? 0) + 1);
      }
      for (const id of again) {
        closed.delete(id);
        led.delete(id);
        past.set(id, values);
        round.set(id, (round.get(id) ?? 0) + 1);
        for (const edge of forward)
          if (edge.to === id || edge.from === id) again.has(edge.from) ? state.delete(edge) : state.set(edge, "old");
      }
      values = new Map([...values].filter(([id]) => !again.has(id)));
      for (const { to } of pending) led.add(to);
      pending = new Set();
    } else break;
  }
  const ends = forward.filter((edge) => edge.to === "end" && state.get(edge) === "taken").map(({ from }) => from);
  const outputs = ends.map((id) => values.get(id));
  trace.output = ends.length > 1 ? Object.fromEntries(ends.map((id, i) => [id, outputs[i]])) : (outputs[0] ?? null);
  return { ...trace, ran: trace.ran.sort(), skipped: trace.skipped.sort(), taken: trace.taken.sort() };
}
