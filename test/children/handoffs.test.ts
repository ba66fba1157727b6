// Handoffs: the same turn goes on with another agent, also after a crash.

import { expect, test } from "vitest";
import { z } from "zod";
import { type Agent, type AgentOptions, createAgent, defineTool, type Handoffs } from "../../src/index.ts";
import { type Script, scriptedModel } from "../../src/testing/index.ts";
import { eventsOf, expectLegal, factTypes, given, main, ofType, s, said } from "../agent/kit.ts";
import { deadOwner } from "../sessions/kit.ts";
import { plain } from "./kit.ts";

const text = (prompt: readonly { content: unknown }[]) => JSON.stringify(prompt);
const lastUser = (prompt: readonly { role: string; content: unknown }[]) =>
  JSON.stringify(prompt.findLast(({ role }) => role === "user")?.content);

function specialist(name: string, script: Script, options: Partial<AgentOptions> = {}) {
  const model = scriptedModel(script);
  return { model, agent: createAgent({ name, model, instructions: `You are ${name}.`, ...options }) as Agent };
}

async function routed(handoffs: Handoffs, script: Script, options: Partial<AgentOptions> = {}) {
  return given(script, { id: "front", name: "router", instructions: "You route.", handoffs, ...options });
}

test("the same turn goes on with the other agent: its instructions, its tools, its model", async () => {
  const look = defineTool({ input: z.object({}), execute: () => "17 euros" });
  const billing = specialist(
    "billing",
    (prompt, index) => (index === 0 ? plain("look") : `It is ${/\d+ euros/.exec(text(prompt))![0]}.`),
    { tools: { look } },
  );
  const { agent, model } = await routed({ billing: billing.agent }, [plain("handoff_to_billing")]);
  const run = agent.run("What do I owe?", s);
  const events = await eventsOf(run);
  const result = await run.result;
  expect(result).toMatchObject({ status: "completed", text: "It is 17 euros.", iterations: 3 });
  expect((await agent.loadBranch(main)).turns).toHaveLength(1);
  expect(said(result.messages)).toEqual([
    "user: What do I owe?",
    "assistant: handoff_to_billing()",
    'tool: "Handed over."',
    "assistant: look()",
    'tool: "17 euros"',
    "assistant: It is 17 euros.",
  ]);
  expect(model.calls).toHaveLength(1);
  const [first] = billing.model.calls;
  expect(first!.prompt[0]).toMatchObject({ role: "system", content: "You are billing." });
  expect((first as unknown as { tools: { name: string }[] }).tools.map(({ name }) => name)).toEqual(["look"]);
  expectLegal(first!.prompt.slice(1));
  const [handed] = ofType(events, "turn.handed");
  expect(handed).toMatchObject({ from: "router", to: "billing", path: ["billing"] });
  // The handoff and the result of its call are one append.
  const types = await factTypes(agent);
  expect(types.slice(types.indexOf("turn.handed"), types.indexOf("turn.handed") + 2)).toEqual([
    "turn.handed",
    "tool.returned",
  ]);
  // Events name the agent that speaks; each fact is shown once.
  const deltas = ofType(events, "text-delta");
  expect(deltas.every(({ agent: by }) => by?.name === "billing" && by.id === "front/billing" && by.depth === 0)).toBe(
    true,
  );
  const seqs = events.flatMap((event) => ("seq" in event && event.seq !== undefined ? [event.seq] : []));
  expect(seqs).toEqual(seqs.toSorted((a, b) => a - b).filter((seq, i, all) => seq !== all[i - 1]));
  // The turn is still the first agent's: that one recovers it.
  expect((await agent.loadBranch(main)).turns[0]!.runs).toMatchObject([{ agentId: "front" }]);
  // A handoff holds for its turn.
  await agent.run("And now?", s).result.catch(() => {});
  expect(model.calls).toHaveLength(2);
});

test("with stay, later turns begin with that agent, until it hands back", async () => {
  // The agent at the front, which each process has its own of.
  let front: Agent;
  const billing = specialist(
    "billing",
    (prompt) => {
      if (lastUser(prompt).includes("else")) return plain("handoff_to_router");
      return prompt.at(-1)!.role === "tool" ? "Billing here." : "Still billing.";
    },
    { handoffs: { router: { agent: () => front, stay: true } } },
  );
  const script: Script = (prompt) => {
    if (text(prompt).includes("Something else") && prompt.at(-1)!.role === "tool") return "The router again.";
    return lastUser(prompt).includes("bill") ? plain("handoff_to_billing") : "Hello from the router.";
  };
  const router = await routed({ billing: { agent: billing.agent, stay: true } }, script);
  const { agent } = router;
  front = agent;
  expect(await agent.run("My bill.", s).text()).toBe("Billing here.");
  expect(await agent.run("More.", s).text()).toBe("Still billing.");
  expect((await agent.loadBranch(main)).state).toMatchObject({ "@agent": ["billing"] });
  // A fork begins with the agent that its branch has.
  const fork = await agent.forkBranch(main, { newBranchId: "other" });
  expect(await agent.run("More.", { ...s, branchId: fork.id }).text()).toBe("Still billing.");
  // So does a queued input, and the next process.
  const next = router.again();
  front = next;
  await next.queueInput(main, "Queued.");
  for await (const { type } of next.watch(main, { after: (await next.loadBranch(main)).seq })) {
    if (type === "turn.committed") break;
  }
  expect(said((await next.loadBranch(main)).messages).at(-1)).toBe("assistant: Still billing.");
  expect(await next.run("Something else.", main).text()).toBe("The router again.");
  expect((await next.loadBranch(main)).state).not.toHaveProperty("@agent");
  expect(await next.run("Hi.", main).text()).toBe("Hello from the router.");
});

test("of several handoffs in one message the first counts; calls beside it are the first agent's", async () => {
  const noted: string[] = [];
  const note = defineTool({ input: z.object({}), execute: () => noted.push("router") });
  const [a, b] = [specialist("a", ["A goes on."]), specialist("b", ["B goes on."])];
  const script = [plain("handoff_to_a", "note", "handoff_to_b")];
  const { agent } = await routed({ a: a.agent, b: b.agent }, script, { tools: { note } });
  const { text: said1, messages } = await agent.run("Go.", s).result;
  expect(said1).toBe("A goes on.");
  expect(said(messages)[2]).toBe(
    'tool: "Handed over." 1 "The conversation was handed over to \\"a\\" in the same step."',
  );
  expect(noted).toEqual(["router"]);
  expect((await factTypes(agent)).filter((type) => type === "turn.handed")).toHaveLength(1);
});

/** Cuts a run off after so many appends, as a dead process would be, and has another process go on. */
test("cut off at any write, the turn comes to the same end with the same agents", async () => {
  const look = defineTool({ input: z.object({}), execute: () => "seen" });
  const note = defineTool({ input: z.object({}), execute: () => "noted" });
  const make = () => {
    const script: Script = (prompt) => (prompt.at(-1)!.role === "tool" ? "Billing is done." : plain("look"));
    const billing = specialist(
      "billing",
      (prompt) => (text(prompt).includes("seen") ? script(prompt, 0) : plain("look")),
      { tools: { look } },
    );
    return { handoffs: { billing: { agent: billing.agent, stay: true } }, tools: { note } };
  };
  const script: Script = () => plain("note", "handoff_to_billing");
  const whole = await routed(make().handoffs, script, { tools: { note } });
  const expected = said((await whole.agent.run("Go.", s).result).messages);
  expect(expected.at(-1)).toBe("assistant: Billing is done.");
  for (let cut = 1; cut <= 8; cut++) {
    const { store, again } = await routed(make().handoffs, script, { tools: { note } });
    let left = cut;
    let die = () => {};
    const died = new Promise<void>((resolve) => {
      die = resolve;
    });
    const dying = new Proxy(store, {
      get(target, name: keyof typeof store) {
        const value = target[name];
        if (typeof value !== "function") return value;
        return (...args: never[]) => {
          if (name === "append") left--;
          if (left >= 0) return (value as (...all: never[]) => unknown).apply(target, args);
          die();
          return new Promise(() => {});
        };
      },
    });
    const doomed = again({ store: dying, owner: deadOwner(), ...make() });
    await Promise.race([doomed.run("Go.", s).result, died]);
    const next = again(make());
    const { uncommittedTurn, turns } = await next.loadBranch(main);
    if (uncommittedTurn || turns.length === 0) await next.run(uncommittedTurn ? undefined : "Go.", s).result;
    expect(said((await next.loadBranch(main)).messages), `cut after ${cut} appends`).toEqual(expected);
    expect((await factTypes(next)).filter((type) => type === "turn.handed")).toHaveLength(1);
  }
});

test("a handoff can need permission; denied, the turn stays where it is", async () => {
  const billing = specialist("billing", ["Billing."]);
  const script: Script = (prompt) => (prompt.at(-1)!.role === "tool" ? "I stay." : plain("handoff_to_billing"));
  const { agent } = await routed({ billing: { agent: billing.agent, permission: true } }, script);
  expect(await agent.run("Go.", { ...s, questions: "deny" }).text()).toBe("I stay.");
  expect(billing.model.calls).toEqual([]);
});

test("what bounds the turn is the first agent's and the run's; the rest is the other agent's", async () => {
  const seen: unknown[] = [];
  const wipe = defineTool({ input: z.object({}), permission: true, execute: () => "wiped" });
  const script: Script = (prompt) =>
    prompt.at(-1)!.role === "tool" && text(prompt).includes("wipe") ? "Done." : plain("wipe");
  const billing = specialist("billing", script, {
    tools: { wipe },
    permissions: { mode: "allow" },
    limits: { iterations: 50 },
    middleware: [{ name: "own", beforeIteration: ({ agent }) => void seen.push(agent.name) }],
  });
  const bounded = await routed({ billing: billing.agent }, [plain("handoff_to_billing")], {
    permissions: { mode: "deny" },
  });
  const denied = await bounded.agent.run("Go.", { ...s, config: { instructions: "Shout.", temperature: 0.3 } }).result;
  expect(said(denied.messages)[4]).not.toContain("wiped");
  expect(seen).toEqual(["billing", "billing"]);
  expect(billing.model.calls[0]!.prompt[0]).toMatchObject({ content: "You are billing." });
  expect(billing.model.calls[0]).not.toHaveProperty("temperature");
  const short = await routed({ billing: billing.agent }, [plain("handoff_to_billing")], { limits: { iterations: 2 } });
  expect(await short.agent.run("Go.", s).result).toMatchObject({ iterations: 2, reason: "iteration-limit" });
});

test("a name that leads nowhere is agent_not_found, and what can't be handed over to is refused when built", async () => {
  const billing = specialist("billing", ["Billing."]);
  const { agent, again } = await routed({ billing: { agent: billing.agent, stay: true } }, [
    plain("handoff_to_billing"),
  ]);
  await agent.run("Go.", s).result;
  const other = specialist("other", ["Other."]);
  const next = again({ handoffs: { other: other.agent } });
  await expect(next.run("Hi.", s).result).rejects.toMatchObject({ code: "agent_not_found" });
  const model = scriptedModel([]);
  const build = (handoffs: object) => () => createAgent({ model, handoffs: handoffs as Handoffs });
  expect(build({ "bad name": billing.agent })).toThrow("needs a name");
  expect(build({ x: { agent: {} } })).toThrow("must be an agent");
  expect(build({ x: { agent: billing.agent, stays: true } })).toThrow("stays");
  expect(build({ x: createAgent({ model, store: "memory:" }) })).toThrow("store of its own");
});
