// What a model was sent is rebuilt from the log, byte for byte, whatever made it.

import { describe, expect, test } from "vitest";
import { z } from "zod";
import { textOf } from "../../src/events/index.ts";
import { defineTool, type Middleware, openSessions, planning } from "../../src/index.ts";
import type { memoryStore } from "../../src/stores/memory/index.ts";
import { given, main, refused, s } from "../agent/kit.ts";
import { callOf, expectProved, numberedModel, sourcesOf, wireOf, wireOfSent } from "./kit.ts";

const look = defineTool({
  description: "Looks a word up.",
  input: z.object({ word: z.string() }),
  effect: "read",
  execute: ({ word }) => `${word}: a word`,
});

/** Calls a tool until the turn has its result. */
const lookFirst = (prompt: readonly { role: string }[]) =>
  prompt.at(-1)?.role === "tool" ? "Done." : { text: "", calls: [{ name: "look", input: { word: "bough" } }] };

async function start(options: Parameters<typeof given>[1] & { reply?: Parameters<typeof numberedModel>[0] } = {}) {
  const { reply, ...more } = options;
  const model = numberedModel(reply);
  return { ...(await given([], { model, instructions: "Be brief.", ...more })), model };
}

describe("what a reply was made from", () => {
  test("is some 200 bytes on its fact, and texts are kept once", async () => {
    const { agent, model, store } = await start({ tools: { look }, reply: lookFirst });
    for (const input of ["One", "Two", "Three"]) await agent.run(input, s).result;
    await expectProved(agent, main, model);
    const facts = (await store.read(main)).map(({ data }) => JSON.parse(data));
    const records = facts.flatMap((fact) => fact.prompt ?? []);
    expect(records.length).toBe(6);
    expect(Object.keys(records[0].texts).length).toBe(3);
    for (const { texts, ...record } of records.slice(1)) {
      expect(texts).toBeUndefined();
      expect(JSON.stringify(record).length).toBeLessThan(230);
    }
  });

  test("costs a turn no append: it goes with the reply", async () => {
    const { agent, store } = await start();
    await agent.run("One", s).result;
    const types = (await store.read(main)).map(({ data }) => JSON.parse(data).type);
    expect(types).toEqual(["branch.created", "turn.started", "message.added", "message.added", "turn.committed"]);
  });

  test("is told to those who read events by its hashes alone", async () => {
    const { agent, store } = await start({ instructions: "A secret plan." });
    const seen: unknown[] = [];
    agent.subscribe("*", (event) => void seen.push(event));
    await agent.run("One", s).result;
    const pages = [await agent.events(main), await agent.events(main, { type: "message.added" })];
    for await (const event of agent.watch(main)) {
      seen.push(event);
      if (event.type === "turn.committed") break;
    }
    expect(JSON.stringify(await store.read(main))).toContain("A secret plan.");
    expect(JSON.stringify([seen, pages])).not.toContain("A secret plan.");
    expect(JSON.stringify(seen)).toContain('"upTo":3');
  });

  test("is told of another agent's, another node's and a closed session's branch alike", async () => {
    const { agent, model, store, again } = await start({ tools: { look }, reply: lookFirst });
    await agent.run("One", s).result;
    const [first] = await expectProved(agent, main, model);
    const other = again({ instructions: "Be long.", tools: {} });
    expect(await other.promptOf(main, first!.messageId)).toEqual(first);
    expect(await (await openSessions(store)).promptOf(main, first!.messageId)).toEqual(first);
  });

  test("a message that no model made has none", async () => {
    const { agent } = await start({ tools: { look }, reply: lookFirst });
    await agent.run("One", s).result;
    const { messages } = await agent.loadBranch(main);
    for (const { id } of messages.filter(({ role }) => role !== "assistant")) {
      await refused(agent.promptOf(main, id), "prompt_not_kept");
    }
    await refused(agent.promptOf(main, "nothing"), "message_not_on_branch");
    const hooked = await given(["never"], {
      middleware: [{ name: "answers", beforeIteration: (it) => it.answer("Enough.") }],
    });
    await hooked.agent.run("One", s).result;
    const reply = (await hooked.agent.loadBranch(main)).messages[1]!;
    await refused(hooked.agent.promptOf(main, reply.id), "prompt_not_kept");
  });
});

describe("what hooks do to a request", () => {
  const redact: Middleware = {
    name: "redact",
    beforeIteration({ request }) {
      for (const [i, message] of request.prompt.entries()) {
        if (message.role !== "user") continue;
        const text = textOf(message).replace(/\d{4}/g, "****");
        (request.prompt as unknown[])[i] = { ...message, content: [{ type: "text", text }] };
      }
    },
  };
  const retrieve: Middleware = {
    name: "retrieve",
    wrapModelCall: (_, request, next) => {
      const found = { role: "user", content: [{ type: "text", text: `Found: ${request.prompt.length}` }] } as const;
      return next({ ...request, prompt: [...request.prompt.slice(0, -1), found, request.prompt.at(-1)!] });
    },
  };
  const trim: Middleware = {
    name: "trim",
    wrapModelCall: (_, request, next) => next({ ...request, prompt: request.prompt.slice(-1), tools: [] }),
  };
  const hotter: Middleware = {
    name: "hotter",
    wrapModelCall: (_, request, next) => next({ ...request, settings: { ...request.settings, temperature: 1.5 } }),
  };
  const dated: Middleware = {
    name: "dated",
    beforeIteration({ request }) {
      const [first] = request.prompt as unknown as { content: string }[];
      first!.content += " Today is Monday.";
    },
  };
  const reads: Middleware = { name: "reads", beforeIteration: ({ request }) => void request.prompt.length };

  test.each([
    ["redacts", [redact], ["instructions", "hook"]],
    ["puts something in", [retrieve], ["instructions", "hook", "message"]],
    ["takes something away", [trim], ["message"]],
    ["changes settings", [hotter], ["instructions", "message"]],
    ["changes the instructions", [dated], ["hook", "message"]],
    ["only reads", [reads], ["instructions", "message"]],
    ["does all of it", [redact, retrieve, hotter, dated, reads], ["hook", "hook", "hook"]],
  ] as const)("one that %s", async (_, middleware, first) => {
    const { agent, model } = await start({ tools: { look }, reply: lookFirst, middleware });
    for (const input of ["My pin is 1234.", "And 5678?"]) await agent.run(input, s).result;
    const prompts = await expectProved(agent, main, model);
    expect(sourcesOf(prompts[0]!)).toEqual(first);
    expect(prompts.length).toBe(4);
  });

  test("of several requests for one reply, the last", async () => {
    const twice: Middleware = {
      name: "twice",
      async *wrapModelCall(_, request, next) {
        for await (const part of next({ ...request, settings: { temperature: 0 } })) void part;
        yield* next({ ...request, settings: { temperature: 1 } });
      },
    };
    const { agent, model } = await start({ middleware: [twice] });
    await agent.run("One", s).result;
    const [prompt] = await expectProved(agent, main, model);
    expect(prompt!.settings).toEqual({ temperature: 1 });
  });

  test("what can't be kept is said, and nothing wrong is told", async () => {
    const large: Middleware = {
      name: "large",
      wrapModelCall: (_, request, next) =>
        next({ ...request, prompt: [{ role: "user", content: [{ type: "text", text: "long ".repeat(80_000) }] }] }),
    };
    const strange: Middleware = {
      name: "strange",
      wrapModelCall: (_, request, next) =>
        next({
          ...request,
          prompt: [{ role: "user", content: [{ type: "file", data: new Uint8Array(3) as never, mediaType: "a/b" }] }],
        }),
    };
    for (const middleware of [large, strange]) {
      const { agent } = await start({ middleware: [middleware] });
      await agent.run("One", s).result;
      const { id } = (await agent.loadBranch(main)).messages.at(-1)!;
      expect(await agent.promptOf(main, id)).toMatchObject({ isVerified: false, missing: ["edits"] });
    }
  });
});

describe("what else makes a prompt", () => {
  test("a plan at its end, and each change of it", async () => {
    const reply = (prompt: readonly { role: string }[], index: number) =>
      prompt.some(({ role }, i) => role === "tool" && i >= prompt.length - 2)
        ? "Done."
        : { calls: [{ name: "update_plan", input: { steps: [{ step: `Step ${index}`, status: "pending" }] } }] };
    const { agent, model } = await start({ middleware: [planning()], reply });
    for (const input of ["One", "Two"]) await agent.run(input, s).result;
    const prompts = await expectProved(agent, main, model);
    expect(prompts.map((each) => sourcesOf(each).at(-1))).toEqual(["message", "reminder", "reminder", "reminder"]);
    const diff = await agent.diffPrompts(main, prompts[1]!.messageId, prompts[2]!.messageId);
    expect(diff).toMatchObject({ isPrefix: true, first: { change: "reminder" } });
  });

  test("reasoning: of the turn, or all of it", async () => {
    const reply = (prompt: readonly { role: string }[]) => ({
      reasoning: "Hm.",
      ...(prompt.at(-1)?.role === "tool" ? { text: "Done." } : { calls: [{ name: "look", input: { word: "a" } }] }),
    });
    for (const sendReasoning of ["turn", "all"] as const) {
      const { agent, model } = await start({ tools: { look }, reply });
      for (const input of ["One", "Two"]) await agent.run(input, { ...s, config: { sendReasoning } }).result;
      const prompts = await expectProved(agent, main, model);
      const diff = await agent.diffPrompts(main, prompts[1]!.messageId, prompts[2]!.messageId);
      const first = sendReasoning === "turn" ? "reasoning" : "messages";
      expect(diff).toMatchObject({ isPrefix: sendReasoning === "all", first: { change: first } });
    }
  });

  test("a run's own options, an output schema, tools of the caller", async () => {
    const { agent, model } = await start();
    await agent.run("One", {
      ...s,
      config: { addInstructions: "In verse.", temperature: 0.3, stop: ["END"], seed: 7 },
    }).result;
    const schema = { type: "object", properties: { a: { type: "number" } }, required: ["a"] } as const;
    const asked = await agent.run("Two", { ...s, output: { mode: "native", schema: { jsonSchema: schema } } }).result;
    expect(asked.status).toBe("failed");
    const tools = { there: { description: "Runs there.", inputSchema: { type: "object" } } } as never;
    await agent.run("Three", { ...s, config: { tools, toolChoice: "auto", limits: { calls: 2 } } }).result;
    const prompts = await expectProved(agent, main, model);
    expect(prompts[0]!.settings).toEqual({ temperature: 0.3, seed: 7, stopSequences: ["END"] });
    expect(prompts[1]!.settings.responseFormat).toMatchObject({ type: "json" });
    expect(prompts.at(-1)!.tools.map(({ name }) => name)).toEqual(["there"]);
    const diff = await agent.diffPrompts(main, prompts[0]!.messageId, prompts[1]!.messageId);
    expect(diff.first?.change).toBe("instructions");
    expect(diff.settings.toSorted()).toEqual(["responseFormat", "seed", "stopSequences", "temperature"]);
  });

  test("an answer that is cut off, and the attempts before one that is not", async () => {
    const passing = Object.assign(new Error("overloaded"), { statusCode: 529 });
    const reply = (_: unknown, index: number) =>
      index === 0 ? { error: passing } : index === 1 ? { text: "Yes." } : { text: "So far", error: new Error("gone") };
    const { agent, model, clock } = await start({ reply });
    agent.subscribe("model-retry", () => void clock.advance(60_000));
    await agent.run("One", s).result;
    expect((await agent.run("Two", s).result).status).toBe("failed");
    const prompts = await expectProved(agent, main, model);
    const { messages } = await agent.loadBranch(main);
    expect(messages.map(({ partial }) => partial)).toEqual([undefined, undefined, undefined, true]);
    expect(prompts.length).toBe(2);
  });

  test("no credential", async () => {
    const settings = {
      headers: { authorization: "Bearer sk-header", "x-team": "blue" },
      providerOptions: { gateway: { apiKey: "sk-option", order: ["a"] } },
    };
    const { agent, model, store } = await start({ settings });
    await agent.run("One", s).result;
    expect(model.calls[0]!.headers).toEqual(settings.headers);
    expect(JSON.stringify(await store.read(main))).not.toMatch(/sk-(header|option)|blue/);
    const { id } = (await agent.loadBranch(main)).messages.at(-1)!;
    const prompt = await agent.promptOf(main, id);
    expect(prompt).toMatchObject({
      isVerified: true,
      settings: { providerOptions: { gateway: { apiKey: "[not kept]", order: ["a"] } } },
    });
    expect(prompt.withheld).toEqual([
      ...["settings.headers.authorization", "settings.headers.x-team", "settings.providerOptions.gateway.apiKey"],
    ]);
  });

  test("a log that was changed is not taken for what was sent", async () => {
    const { agent, model } = await start();
    await agent.run("One", s).result;
    await expectProved(agent, main, model);
    const { id } = (await agent.loadBranch(main)).messages.at(-1)!;
    for (const [said, changed] of [
      ["Be brief.", "Be loud."],
      ['"One"', '"Two"'],
    ] as const) {
      const sessions = await openSessions(tampered(agent.store, said, changed));
      const prompt = await sessions.promptOf(main, id);
      expect(prompt.isVerified).toBe(false);
    }
  });
});

function tampered(
  store: ReturnType<typeof memoryStore>,
  said: string,
  changed: string,
): ReturnType<typeof memoryStore> {
  return new Proxy(store, {
    get(target, name: keyof typeof store) {
      const value = target[name];
      if (name !== "read") return typeof value === "function" ? value.bind(target) : value;
      return async (...args: Parameters<typeof store.read>) =>
        (await store.read(...args)).map((event) => ({ ...event, data: event.data.replaceAll(said, changed) }));
    },
  });
}

test("a rebuilt prompt is what the call had, to the last byte", async () => {
  const { agent, model } = await start();
  await agent.run("One", s).result;
  const reply = (await agent.loadBranch(main)).messages.at(-1)!;
  const prompt = await agent.promptOf(main, reply.id);
  expect(wireOfSent(prompt)).toEqual(wireOf(model.calls[callOf(reply)]!));
  expect(prompt).toMatchObject({ sessionId: "s", branchId: "main", upTo: 3, model: { provider: "bough" } });
});
