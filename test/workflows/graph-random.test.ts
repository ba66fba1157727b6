// Random graphs, with conditions and loops, beside a reference interpreter that works through them one node at a time: the same
// nodes run in the same rounds with the same values, whatever is faster and wherever it crashes, and every graph comes to its end.

import fc from "fast-check";
import { expect, test } from "vitest";
import { type Graph, graph } from "../../src/workflows/index.ts";
import { Crash, memoryFlow, newExecution, nodesRun } from "./graph-kit.ts";
import { behaviourOf, build, type RandomGraph, randomGraph } from "./graph-kit-random.ts";
import { checkMermaid } from "./mermaid-grammar.ts";
import { reference } from "./reference-interpreter.ts";

const runs = Number(process.env.BOUGH_GRAPHS ?? 300);

interface Trace {
  ran: string[];
  skipped: string[];
  taken: string[];
  output: unknown;
}

async function trace(made: Graph, random: RandomGraph, crashes: readonly number[], speeds: number): Promise<Trace> {
  const execution = newExecution();
  const delay = (key: string) => ((key.length * 31 + key.charCodeAt(1) * speeds) % 5) + 1;
  for (const crashAfter of [...crashes, undefined]) {
    execution.events.length = 0;
    execution.skipped.clear();
    const { flow } = memoryFlow({ execution, delay, ...(crashAfter !== undefined && { crashAfter }) });
    const output = await Promise.resolve(made.run(flow, random.seed)).catch((error: Error) => error);
    if (output instanceof Crash) continue;
    const taken = execution.events.flatMap((event) =>
      event.type === "edge-take" ? [`${event.from}#${event.round}->${event.to}`] : [],
    );
    const recorded = [...execution.records.keys()];
    const skipped = [...execution.skipped].map(([key, why]) => `${key}: ${why}`);
    const done = output instanceof Error ? `Error: ${output.message}` : output;
    return { ran: nodesRun({ ran: recorded }).sort(), skipped: skipped.sort(), taken: taken.sort(), output: done };
  }
  throw new Error("It never came to its end.");
}

test("run like the reference interpreter, wherever they crash and whatever is faster", async () => {
  const property = fc.asyncProperty(
    randomGraph,
    fc.array(fc.nat(6), { maxLength: 3 }),
    fc.nat(100),
    async (random, crashes, speeds) => {
      const seen = new Map<string, string>();
      const made = build(random, seen);
      const wanted = reference(random, behaviourOf(random));
      const got = await trace(made, random, crashes, speeds);
      if (wanted.output === "stopped") {
        expect(got.output).toMatch(/^Error: n\d fails$/);
        return;
      }
      expect(got).toEqual({ ran: wanted.ran, skipped: wanted.skipped, taken: wanted.taken, output: wanted.output });
      const isRaced = random.nodes.some(({ join }) => join === "any");
      if (!isRaced) for (const [key, values] of wanted.seen) expect(`${key} ${seen.get(key)}`).toBe(`${key} ${values}`);
    },
  );
  await fc.assert(property, { numRuns: runs });
});

test("are the same after a trip through JSON, and are drawn", () => {
  const property = fc.property(randomGraph, (random) => {
    const made = build(random, new Map());
    const again = graph.fromJSON(JSON.parse(JSON.stringify(made)), made.bindings);
    expect(again.toJSON()).toEqual(made.toJSON());
    expect(again.digest).toBe(made.digest);
    expect(checkMermaid(again.toMermaid())).toEqual([]);
  });
  fc.assert(property, { numRuns: runs });
});
