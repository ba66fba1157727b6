// Random workflows, cut off at a random write, taken up by another process whose code has its statements in another order: the same
// outputs, every recorded step run once.

import fc from "fast-check";
import { expect, test } from "vitest";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { checkLogs } from "../../src/testing/index.ts";
import { createWorkflow, type Flow, workflow } from "../../src/workflows/index.ts";
import { deadOwner } from "../sessions/kit.ts";
import { dying } from "./kit.ts";

type Statement =
  | { readonly kind: "step" | "fails" | "ask" | "wait" | "sleep" | "chance"; readonly name: string }
  | { readonly kind: "all" | "map"; readonly name: string; readonly parts: readonly Statement[] }
  | { readonly kind: "race"; readonly name: string };

const { program } = fc.letrec<{ statement: Statement; program: Statement[] }>((tie) => ({
  program: fc.uniqueArray(tie("statement"), {
    minLength: 1,
    maxLength: 5,
    selector: ({ name }) => name,
    depthIdentifier: "flow",
  }) as fc.Arbitrary<Statement[]>,
  statement: fc.oneof(
    { maxDepth: 2, depthIdentifier: "flow" },
    fc.record({
      kind: fc.constantFrom("step", "fails", "ask", "wait", "sleep", "chance", "race"),
      name: fc.constantFrom(..."abcdefgh"),
    }) as fc.Arbitrary<Statement>,
    fc.record({
      kind: fc.constantFrom("all", "map"),
      name: fc.constantFrom(..."ijkl"),
      parts: tie("program"),
    }) as fc.Arbitrary<Statement>,
  ),
}));

/** Steps that had their effect, each as often as it ran. */
type Ran = Map<string, number>;

const runs = (flow: Flow, { kind, name, ...rest }: Statement, ran: Ran): Promise<unknown> => {
  const effect = (key: string) => void ran.set(key, (ran.get(key) ?? 0) + 1);
  if (kind === "step")
    return flow.step(name, ({ key }) => {
      effect(key);
      return `did ${name}`;
    });
  if (kind === "fails") {
    const failing = flow.step(name, ({ key }) => {
      effect(key);
      throw new Error(`no ${name}`);
    });
    return failing.catch((error: Error) => error.message);
  }
  if (kind === "ask") return flow.ask(name);
  if (kind === "wait") return flow.wait(name);
  if (kind === "sleep") return flow.sleep(name, 1).then(() => "slept");
  if (kind === "chance") return flow.random(name).then(() => "drawn");
  if (kind === "race") {
    return flow.race(name, { never: () => flow.wait("never"), now: () => flow.step("now", () => 1) });
  }
  const { parts } = rest as { parts: readonly Statement[] };
  if (kind === "all")
    return flow.all(name, Object.fromEntries(parts.map((each) => [each.name, () => runs(flow, each, ran)])));
  return flow.map(name, parts, (each) => runs(flow, each, ran), { key: (each) => each.name, parallel: 2 });
};

/** What it comes to when nothing goes wrong. */
const expected = ({ kind, name, ...rest }: Statement): unknown => {
  const { parts = [] } = rest as { parts?: readonly Statement[] };
  if (kind === "all") return Object.fromEntries(parts.map((each) => [each.name, expected(each)]));
  if (kind === "map") return parts.map(expected);
  const known = {
    ...{ step: `did ${name}`, fails: `no ${name}`, ask: { approved: true }, wait: `sent ${name}`, sleep: "slept" },
    ...{ chance: "drawn", race: { name: "now", value: 1 } },
  };
  return known[kind as keyof typeof known];
};

const waitsIn = (parts: readonly Statement[]): string[] =>
  parts.flatMap((each) => ("parts" in each ? waitsIn(each.parts) : each.kind === "wait" ? [each.name] : []));

test("come to the same end, wherever they are cut off and however their statements are ordered", async () => {
  const cases = fc.asyncProperty(
    program,
    fc.integer({ min: 1, max: 20 }),
    fc.boolean(),
    async (parts, writes, turned) => {
      const store = memoryStore();
      const ran: Ran = new Map();
      const code = (order: readonly Statement[]) =>
        workflow("random", async (flow, _input: string) => {
          const made: Record<string, unknown> = {};
          for (const each of order) made[each.name] = await runs(flow, each, ran);
          return made;
        });
      const options = { telemetry: false, napMs: 0, logger: { warn: () => {} } };
      const cut = dying(store, writes);
      const dead = createWorkflow(code(parts), { store: cut.store, owner: deadOwner(), ...options });
      const run = dead.run("x", { executionId: "e" });
      run.discardEvents();
      await Promise.race([cut.died, run.result.catch(() => {})]);
      const runner = createWorkflow(code(turned ? parts.toReversed() : parts), { store, ...options });
      const ref = runner.scope("e");
      await runner.run("x", { executionId: "e" }).result.catch(() => {});
      for (let n = 0; ; n++) {
        expect(n).toBeLessThan(200);
        const branch = await runner.loadBranch(ref);
        if (!branch.uncommittedTurn) break;
        for (const name of waitsIn(parts)) {
          // Each wait of a name takes a signal of its own.
          const signal = { name, payload: `sent ${name}` };
          await (await runner.signal(ref, signal).catch(() => undefined))?.result.catch(() => {});
        }
        for (const { id } of (await runner.loadBranch(ref)).interactions) {
          const again = await runner.respond(ref, id, { approved: true }).catch(() => undefined);
          await again?.result.catch(() => {});
        }
        await runner.run(undefined, { executionId: "e" }).result.catch(() => {});
      }
      const { messages, turns } = await runner.loadBranch(ref);
      expect(turns.map(({ status }) => status)).toEqual(["committed"]);
      const [{ text }] = messages.at(-1)!.content as unknown as [{ text: string }];
      expect(JSON.parse(text)).toEqual(Object.fromEntries(parts.map((each) => [each.name, expected(each)])));
      // What the death cut off before its record was durable ran twice at most; nothing recorded ran again.
      for (const [key, count] of ran) expect([key, count <= 2]).toEqual([key, true]);
      expect(await checkLogs(store)).toEqual([]);
      await runner.close();
    },
  );
  const seed = Number(process.env.SEED ?? Date.now());
  console.log(`seed ${seed}`);
  await fc.assert(cases, { seed, numRuns: Number(process.env.BOUGH_TEST_RUNS ?? 40) });
});
