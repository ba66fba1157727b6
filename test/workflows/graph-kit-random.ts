// Random graphs, and what their nodes do: the same at every pass.

import fc from "fast-check";
import type { JsonObject } from "../../src/index.ts";
import { type Graph, graph } from "../../src/workflows/index.ts";
import type { Behaviour } from "./reference-interpreter.ts";

interface RandomEdge {
  from: string;
  to: string;
  when?: JsonObject | "otherwise";
  max?: number;
}

export interface RandomGraph {
  nodes: { id: string; join: "all" | "any"; onError: "stop" | "skip" | "isolate" }[];
  edges: RandomEdge[];
  seed: number;
}

const condition = fc.oneof(
  fc.record({ field: fc.constant("n"), above: fc.integer({ min: 0, max: 9 }) }),
  fc.record({
    field: fc.constant("n"),
    oneOf: fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 1, maxLength: 5 }),
  }),
  fc.record({ none: fc.tuple(fc.record({ field: fc.constant("n"), below: fc.integer({ min: 0, max: 9 }) })) }),
  fc.record({ field: fc.constant("error"), exists: fc.boolean() }),
);
const when = fc.option(
  fc.oneof({ weight: 4, arbitrary: condition }, { weight: 1, arbitrary: fc.constant("otherwise") }),
  { nil: undefined },
);
const pair = fc.record({ a: fc.nat(6), b: fc.nat(6), when, max: fc.integer({ min: 1, max: 3 }), isBack: fc.boolean() });

/** A graph that is allowed: every node comes after an earlier one, edges back close loops, and an "otherwise" is there once. */
export const randomGraph = fc
  .record({
    count: fc.integer({ min: 1, max: 7 }),
    pairs: fc.array(pair, { maxLength: 14 }),
    parents: fc.array(fc.nat(6), { minLength: 7, maxLength: 7 }),
    joins: fc.array(fc.constantFrom("all", "all", "any"), { minLength: 7, maxLength: 7 }),
    errors: fc.array(fc.constantFrom("stop", "stop", "skip", "isolate"), { minLength: 7, maxLength: 7 }),
    seed: fc.nat(),
  })
  .map(({ count, pairs, parents, joins, errors, seed }): RandomGraph => {
    const ids = Array.from({ length: count }, (_, i) => `n${i}`);
    const nodes = ids.map((id, i) => ({ id, join: joins[i]!, onError: errors[i]! }) as RandomGraph["nodes"][number]);
    const edges: RandomEdge[] = ids.map((to, i) => ({
      from: i === 0 || parents[i]! >= i ? "start" : ids[parents[i]!]!,
      to,
    }));
    const leads = (from: string, to: string): boolean =>
      from === to || edges.some((edge) => edge.max === undefined && edge.from === from && leads(edge.to, to));
    for (const { a, b, when, max, isBack } of pairs) {
      const [low, high] = [Math.min(a, b) % count, Math.max(a, b) % count].sort((x, y) => x - y) as [number, number];
      const [from, to] = isBack ? [ids[high]!, ids[low]!] : [ids[low]!, ids[high]!];
      if ((!isBack && low === high) || edges.some((edge) => edge.from === from && edge.to === to)) continue;
      if (isBack && !leads(to, from)) continue;
      const isSecond = when === "otherwise" && edges.some((edge) => edge.from === from && edge.when === "otherwise");
      edges.push({
        from,
        to,
        ...(when !== undefined && !isSecond && { when: when as JsonObject }),
        ...(isBack && { max }),
      });
    }
    return { nodes, edges, seed };
  });

/** What a node does in a round: the same at every pass. */
export function behaviourOf({ seed }: RandomGraph): Behaviour {
  return (id, round) => {
    let hash = seed;
    for (const sign of `${id}#${round}`) hash = (Math.imul(hash ^ sign.charCodeAt(0), 0x01000193) >>> 0) % 0x7fffffff;
    return hash % 11 === 0 ? { fails: true } : { output: { n: hash % 10 } };
  };
}

export function build(random: RandomGraph, seen: Map<string, string>, onRun: (key: string) => void = () => {}): Graph {
  const behave = behaviourOf(random);
  const nodes = random.nodes.map(({ id, join, onError }) => {
    const run = ({ outputs }: { outputs: object }, { key }: { key: string }) => {
      onRun(key);
      seen.set(key, JSON.stringify(outputs, Object.keys(outputs).sort().concat("n", "error", "message")));
      const does = behave(id, Number(key.split("#")[1] ?? 1));
      if ("fails" in does) throw new Error(`${id} fails`);
      return does.output;
    };
    return [id, { run, join, onError }] as const;
  });
  return graph("random", { nodes: Object.fromEntries(nodes), edges: random.edges as never });
}
