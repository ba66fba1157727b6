// Questions of children: mirrored on every ancestor, answered at either end, exactly once, also after a restart.

import { expect, test } from "vitest";
import { z } from "zod";
import { type Agent, type AgentOptions, defineTool } from "../../src/index.ts";
import { eventsOf, given, main, ofType, s, said } from "../agent/kit.ts";
import { calls, hidden, plain, tool, worker } from "./kit.ts";

/** A tool that asks a person, and one that needs permission. */
const ask = defineTool({ input: z.object({}), execute: (_, context) => context.ask("Which tree?") });
const cut = defineTool({ input: z.object({}), permission: true, execute: () => "cut" });

/** Agents below each other; the last one asks. The same functions of the prompt after a restart. */
function chain(depth: number, question: "ask" | "cut" = "ask") {
  const last = worker("leaf", (prompt) => (prompt.at(-1)!.role === "tool" ? "Leaf done." : plain(question)), {
    tools: { ask, cut },
  });
  let top = last;
  for (let level = depth - 1; level > 0; level--) {
    const below = top;
    const script = (prompt: readonly { role: string }[]) =>
      prompt.at(-1)!.role === "tool" ? `Level ${level} done.` : calls("help");
    top = worker(`level${level}`, script, { tools: { help: tool(below) } });
  }
  const script = (prompt: readonly { role: string }[]) =>
    prompt.at(-1)!.role === "tool" ? "All done." : calls("help");
  const options: Partial<AgentOptions> = { name: "boss", tools: { help: tool(top) } };
  return { script, options, leaf: last };
}

const answer = { answer: "The oak." };

test("a child's question is a question of its parent, answered on the parent's stream", async () => {
  const { script, options, leaf } = chain(1);
  const { agent } = await given(script, options);
  const run = agent.run("Go.", s);
  const opened: { id: string; branchId: string }[] = [];
  const events: string[] = [];
  for await (const event of run) {
    if (event.type.startsWith("interaction.")) events.push(`${event.type} ${event.branchId}`);
    if (event.type !== "interaction.opened") continue;
    opened.push(event);
    const [child] = await hidden(agent);
    expect(event).toMatchObject({
      branchId: "main",
      kind: "clarification",
      request: {
        question: "Which tree?",
        child: { agent: "leaf", chain: ["boss", "leaf"], depth: 1, sessionId: "s", branchId: child!.id },
      },
    });
    await run.respond(event.id, answer);
  }
  expect((await run.result).text).toBe("All done.");
  expect(events).toEqual(["interaction.opened main", "interaction.answered main"]);
  const [child] = await hidden(agent);
  const log = await agent.events({ sessionId: "s", branchId: child!.id }, { type: "interaction.answered" });
  expect(log).toMatchObject([{ answer }]);
  expect(leaf.model.calls).toHaveLength(2);
});

test.each([1, 2, 3])(
  "a question from depth %i is answered at the root, with its own kind and expiry",
  async (depth) => {
    const { script, options } = chain(depth, "cut");
    const { agent } = await given(script, options);
    const run = agent.run("Go.", { ...s, config: { limits: { answerMs: 60_000 } } });
    for await (const event of run) {
      if (event.type !== "interaction.opened") continue;
      expect(event).toMatchObject({ branchId: "main", kind: "permission", request: { toolName: "cut", child: {} } });
      await run.respond(event.id, { approved: true });
    }
    expect((await run.result).text).toBe("All done.");
    const own = await Promise.all(
      (await hidden(agent)).map(({ id }) =>
        agent.events({ sessionId: "s", branchId: id }, { type: "interaction.answered" }),
      ),
    );
    expect(own.map((facts) => facts.length)).toEqual(Array(depth).fill(1));
  },
);

/** Parks a tree, so that nothing runs and the question waits at every level. */
async function parked(depth: number) {
  const { script, options, leaf } = chain(depth);
  const world = await given(script, options);
  const { agent, store } = world;
  const result = await agent.run("Go.", { ...s, questions: "park" }).result;
  expect(result).toMatchObject({ status: "parked", reason: "question", interactions: [{ request: { child: {} } }] });
  expect(await store.listRuns({})).toEqual([]);
  const restarted = world.again();
  const questions = await Promise.all(
    [...(await hidden(restarted)).map(({ id }) => id), "main"].map(async (branchId) => {
      const { interactions } = await restarted.loadBranch({ sessionId: "s", branchId });
      return { branchId, id: interactions[0]!.id };
    }),
  );
  return { ...world, agent: restarted, leaf, questions };
}

async function finished(agent: Agent, leafCalls: number, leaf: { model: { calls: readonly unknown[] } }) {
  const branches = await Promise.all(
    [...(await hidden(agent)).map(({ id }) => id), "main"].map((branchId) =>
      agent.loadBranch({ sessionId: "s", branchId }),
    ),
  );
  for (const { turns, interactions } of branches) {
    expect(turns.at(-1)!.status).toBe("committed");
    expect(interactions).toEqual([]);
  }
  expect(leaf.model.calls).toHaveLength(leafCalls);
}

test.each([1, 2, 3])("a tree of depth %i that is parked holds nothing, and goes on after a restart", async (depth) => {
  const { agent, questions, leaf } = await parked(depth);
  const [left] = (await agent.recover({ resume: false })).filter(({ branchId }) => branchId === "main");
  expect(left).toMatchObject({ waitingFor: [{ id: questions.at(-1)!.id }] });
  const run = await agent.respond(main, questions.at(-1)!.id, answer, { by: "ada" });
  expect((await run!.result).text).toBe("All done.");
  await finished(agent, 2, leaf);
  for (const { branchId } of questions) {
    const facts = await agent.events({ sessionId: "s", branchId }, { type: "interaction.answered" });
    expect(facts).toMatchObject([{ answer, by: "ada" }]);
  }
});

test.each([0, 1, 2, 3])(
  "a question of a parked tree can be answered at level %i; the root's turn goes on",
  async (level) => {
    const { agent, questions, leaf } = await parked(3);
    const order = await byDepth(agent, questions);
    const at = order[level]!;
    const run = await agent.respond({ sessionId: "s", branchId: at.branchId }, at.id, answer);
    expect(await run!.started).toMatchObject({ branchId: "main" });
    expect((await run!.result).text).toBe("All done.");
    await finished(agent, 2, leaf);
  },
);

async function byDepth(agent: Agent, questions: readonly { branchId: string; id: string }[]) {
  const depths = await Promise.all(
    questions.map(async (each) => {
      const { metadata } = await agent.getBranch({ sessionId: "s", branchId: each.branchId });
      return { ...each, depth: Number(metadata.depth ?? 0) };
    }),
  );
  return depths.sort((a, b) => a.depth - b.depth);
}

test("of an answer at the child and one at the mirror, one counts", async () => {
  const { agent, questions, leaf } = await parked(1);
  const [child, root] = questions;
  const ends = await Promise.allSettled([
    agent.answer({ sessionId: "s", branchId: child!.branchId }, child!.id, { answer: "The elm." }),
    agent.answer(main, root!.id, answer),
  ]);
  expect(ends.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  const refused = ends.find((end) => end.status === "rejected") as PromiseRejectedResult;
  expect(refused.reason).toMatchObject({ code: "interaction_closed" });
  // The mirror does not hold the turn back, whoever was first.
  expect((await agent.run(undefined, main).result).text).toBe("All done.");
  await finished(agent, 2, leaf);
});

test("a mirror whose question was answered while no process was alive does not hold its turn back", async () => {
  const { agent, questions, leaf } = await parked(2);
  const [deepest] = (await byDepth(agent, questions)).reverse();
  // Only the answer, as if the process had died before it resumed anything.
  await agent.answer({ sessionId: "s", branchId: deepest!.branchId }, deepest!.id, answer);
  const [left] = (await agent.recover()).filter(({ branchId }) => branchId === "main");
  expect(left!.waitingFor).toEqual([]);
  expect((await left!.run!.result).text).toBe("All done.");
  await finished(agent, 2, leaf);
});

test("a question that expires in a parked tree is closed everywhere, and the model reads that", async () => {
  const { script, options } = chain(2, "cut");
  const { agent, clock } = await given(script, { ...options, limits: { answerMs: 1000 } });
  await agent.run("Go.", { ...s, questions: "park", config: { tighten: { limits: { answerMs: 1000 } } } }).result;
  clock.advance(2000);
  const [left] = (await agent.recover()).filter(({ branchId }) => branchId === "main");
  expect((await left!.run!.result).text).toBe("All done.");
  for (const branchId of ["main", ...(await hidden(agent)).map(({ id }) => id)]) {
    expect((await agent.loadBranch({ sessionId: "s", branchId })).interactions).toEqual([]);
  }
});

test("a call that waits for a parked child parks its run after the other calls", async () => {
  const leaf = worker("leaf", (prompt) => (prompt.at(-1)!.role === "tool" ? "Leaf done." : plain("ask")), {
    tools: { ask },
  });
  const look = defineTool({ input: z.object({}), execute: () => "seen" });
  const both = { calls: [...calls("help").calls, ...plain("look").calls] };
  const script = (prompt: readonly { role: string }[]) => (prompt.at(-1)!.role === "tool" ? "Done." : both);
  const { agent } = await given(script, { tools: { help: tool(leaf), look } });
  const { status, interactions } = await agent.run("Go.", { ...s, questions: "park" }).result;
  expect(status).toBe("parked");
  const open = (await agent.loadBranch(main)).uncommittedTurn!;
  expect(said(open.messages)).toEqual(["user: Go.", "assistant: help() look()", 'tool: "seen"']);
  const run = await agent.respond(main, interactions![0]!.id, answer);
  expect((await run!.result).text).toBe("Done.");
});

test("two children of one call that ask are both mirrored; the turn goes on when both are answered", async () => {
  const leaf = worker("leaf", (prompt) => (prompt.at(-1)!.role === "tool" ? "Yes." : plain("ask")), { tools: { ask } });
  const both = defineTool({
    input: z.object({}),
    execute: async (_, { spawn }) => {
      const all = await Promise.all(["a", "b"].map((key) => spawn(leaf.agent, `Ask ${key}.`, { key })));
      return all.map(({ text }) => text).join(" ");
    },
  });
  const script = (prompt: readonly { role: string }[]) => (prompt.at(-1)!.role === "tool" ? "Done." : plain("both"));
  const { agent } = await given(script, { tools: { both } });
  const { interactions } = await agent.run("Go.", { ...s, questions: "park" }).result;
  expect(interactions).toHaveLength(2);
  expect(await agent.respond(main, interactions![0]!.id, answer)).toBeUndefined();
  const run = await agent.respond(main, interactions![1]!.id, answer);
  expect((await run!.result).text).toBe("Done.");
  expect(leaf.model.calls).toHaveLength(4);
});

test("with nobody to ask, a child is told so, as its parent is", async () => {
  const { script, options } = chain(1, "cut");
  const { agent } = await given(script, options);
  await agent.run("Go.", { ...s, questions: "deny" }).result;
  const [child] = await hidden(agent);
  const { messages } = await agent.loadBranch({ sessionId: "s", branchId: child!.id });
  expect(said(messages).at(-2)).toContain("No one is available to give permission");
});

test("the inbox shows a question once, on the root", async () => {
  const { agent, questions } = await parked(3);
  const { interactions } = await agent.listInteractions();
  expect(interactions.map(({ id, branchId }) => ({ id, branchId }))).toEqual([
    { id: questions.at(-1)!.id, branchId: "main" },
  ]);
});

test("a run's permission mode holds for its children, and a child can't have more than its parent allows", async () => {
  const free = worker("free", (prompt) => (prompt.at(-1)!.role === "tool" ? "Leaf done." : plain("cut")), {
    tools: { cut },
    permissions: { mode: "allow" },
  });
  const script = (prompt: readonly { role: string }[]) => (prompt.at(-1)!.role === "tool" ? "Done." : calls("help"));
  const { agent } = await given(script, { tools: { help: tool(free) } });
  const last = async () => {
    const child = (await hidden(agent)).at(-1)!;
    return said((await agent.loadBranch({ sessionId: "s", branchId: child.id })).messages).at(-2);
  };
  await agent.run("Go.", s).result;
  expect(await last()).toBe('tool: "cut"');
  await agent.run("Go.", { ...s, config: { tighten: { permissionMode: "deny" } } }).result;
  expect(await last()).toContain("not permitted");
  await agent.run("Go.", { ...s, config: { permissionMode: "deny" } }).result;
  expect(await last()).toContain("not permitted");
});

test("an answer of always holds for the child's tool in the whole session", async () => {
  const { script, options } = chain(1, "cut");
  const { agent } = await given(script, options);
  const first = agent.run("Go.", s);
  for await (const event of first) {
    if (event.type === "interaction.opened") await first.respond(event.id, { approved: true, choice: "always" });
  }
  expect(await agent.listPermissions("s")).toMatchObject([{ agentId: "boss/leaf", tool: "cut", decision: "allow" }]);
  const events = await eventsOf(agent.run("Again.", s));
  expect(ofType(events, "interaction.opened")).toEqual([]);
  expect(ofType(events, "permission.granted")).toMatchObject([{ how: "always" }]);
});
