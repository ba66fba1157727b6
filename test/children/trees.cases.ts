// Random trees of agents, cut off at a random write and taken up by another process: they come to the end that they would have
// come to, everything recorded once. For every store.

import fc from "fast-check";
import { expect, test } from "vitest";
import { z } from "zod";
import { type Agent, createAgent, defineTool, type SpawnOptions, type Store, subagent } from "../../src/index.ts";
import { checkLogs, scriptedModel } from "../../src/testing/index.ts";
import { said } from "../agent/kit.ts";
import { deadOwner, dying } from "../sessions/kit.ts";

/** An agent, and what it does in its one batch of calls. */
interface Node {
  readonly fails: boolean;
  readonly steps: readonly Step[];
}
type Step =
  | { readonly kind: "note" | "ask" }
  | { readonly kind: "child"; readonly node: Node; readonly policy: Policy };
type Policy = Pick<SpawnOptions, "session" | "branch">;

const policies: readonly Policy[] = [{}, { branch: "fresh" }, { session: "new" }, { session: { shared: "team" } }];
const { tree } = fc.letrec<{ tree: Node; step: Step }>((tie) => ({
  tree: fc.record({
    fails: fc.boolean(),
    steps: fc.array(tie("step"), { minLength: 1, maxLength: 3, depthIdentifier: "tree" }),
  }),
  step: fc.oneof(
    { maxDepth: 3, depthIdentifier: "tree" },
    fc.constantFrom<Step>({ kind: "note" }, { kind: "ask" }),
    fc.record({ kind: fc.constant("child" as const), node: tie("tree"), policy: fc.constantFrom(...policies) }),
  ),
}));

const empty = z.object({});
const usage = { inputTokens: 2, outputTokens: 1, totalTokens: 3 };
const ask = defineTool({ input: empty, execute: (_, context) => context.ask("Which?") });
const note = defineTool({ input: empty, execute: () => "noted" });

/** The agents of a tree; the root has the store. */
function agentOf({ fails, steps }: Node, name: string, more: object = {}): Agent {
  const tools: Record<string, ReturnType<typeof subagent> | typeof ask | typeof note> = { ask, note };
  const calls = steps.map((step, i) => {
    if (step.kind !== "child") return { name: step.kind, input: {} };
    const description = "Helps.";
    const child = agentOf({ ...step.node }, `${name}-${i}`);
    tools[`child${i}`] = subagent(child, { description, permission: false, ...step.policy });
    return { name: `child${i}`, input: { input: `Do ${name}-${i}.` } };
  });
  const isRoot = "store" in more;
  const model = scriptedModel((prompt) => {
    const isDone = prompt.at(-1)!.role === "tool";
    if (!isDone) return { calls, usage };
    return fails && !isRoot ? { error: new Error(`no ${name}`) } : { text: `${name} is done.`, usage };
  });
  const retry = { attempts: 1 };
  return createAgent({ name, model, tools, retry, telemetry: false, ...more }) as Agent;
}

const main = { sessionId: "s", branchId: "main" };

/** Begins the turn or takes it up, and answers what is asked, until the turn is over. */
async function finish(agent: Agent): Promise<void> {
  for (;;) {
    const { uncommittedTurn, turns } = await agent.loadBranch(main);
    if (!uncommittedTurn && turns.length > 0) return;
    const questions = "park" as const;
    if (!uncommittedTurn) await agent.run("Go.", { ...main, questions }).result;
    else {
      const [left] = (await agent.recover({ resume: false })).filter(({ branchId }) => branchId === "main");
      for (const { id } of left!.waitingFor) await agent.answer(main, id, { answer: "The oak." });
      await agent.run(undefined, { ...main, questions }).result;
    }
  }
}

interface Told {
  readonly messages: readonly string[];
  readonly ends: readonly unknown[];
  readonly usage: unknown;
  readonly children: readonly Told[];
}

/** What a branch and the children of its own last turn came to. */
async function outcome(agent: Agent, ref: { sessionId: string; branchId: string }): Promise<Told> {
  const { messages, turns, usage: used } = await agent.loadBranch(ref);
  const { id, children } = turns.at(-1)!;
  const facts = await agent.events(ref, { turnId: id, type: "tool.returned" });
  const refs = facts.flatMap((fact) =>
    fact.type === "tool.returned" && fact.child ? [{ name: fact.toolName, ...fact.child }] : [],
  );
  const ordered = (refs as { name: string; sessionId: string; branchId: string }[]).sort((a, b) =>
    a.name < b.name ? -1 : 1,
  );
  const below = [];
  for (const child of ordered) below.push(await outcome(agent, child));
  const ends = turns.slice(-1).map(({ status, reason, iterations }) => ({ status, reason, iterations }));
  return { messages: said(messages), ends, usage: { used, children }, children: below };
}

export function treeCases(open: () => Promise<Store>, { runs = 15 }: { runs?: number } = {}): void {
  test("a tree that is cut off at any write comes to the end that it would have come to", {
    timeout: 300_000,
  }, async () => {
    const seed = Number(process.env.BOUGH_SEED ?? Date.now());
    console.log(`seed ${seed}`);
    const property = fc.asyncProperty(tree, fc.nat(60), fc.nat(20), async (root, first, second) => {
      const [calm, cut] = [await open(), await open()];
      const whole = agentOf(root, "root", { store: calm });
      await whole.createSession("s");
      await finish(whole);
      const expected = await outcome(whole, main);
      await agentOf(root, "root", { store: cut }).createSession("s");
      for (const writes of [first, second]) {
        const { store, died } = dying(cut, writes);
        const doomed = agentOf(root, "root", { store, owner: deadOwner() });
        await Promise.race([finish(doomed), died]);
      }
      const last = agentOf(root, "root", { store: cut });
      await finish(last);
      expect(await outcome(last, main)).toEqual(expected);
      expect(await checkLogs(cut)).toEqual([]);
      expect(await cut.listRuns({})).toEqual([]);
    });
    await fc.assert(property, { numRuns: runs, seed });
  });
}
