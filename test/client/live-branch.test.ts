// The picture of a branch: what a screen shows is what the server has, whatever happens on the way.

import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import type { BranchPicture, LiveBranch, RemoteBranch } from "../../src/client/index.ts";
import { type Draft, type Message, textOf } from "../../src/events/index.ts";
import { defineTool, keepTurns } from "../../src/index.ts";
import type { ScriptedReply } from "../../src/scripted/index.ts";
import { add, gate, given, held, until } from "../server/kit.ts";
import { appendRaw, main, replay } from "../sessions/kit.ts";
import { badLine, clientOf, seeded, transports } from "./kit.ts";

const scope = { agentId: "helper", sessionId: "s" };

/** Watches until the test is over; every picture is kept. */
function watching(live: LiveBranch): readonly BranchPicture[] {
  const seen: BranchPicture[] = [];
  onTestFinished(live.subscribe(() => seen.push(live.current)));
  return seen;
}

const textsOf = ({ messages }: BranchPicture) => messages.map((message) => textOf(message));

describe.each(transports)("over %s", (transport) => {
  test("shows a turn from its beginning to its end", async () => {
    const client = await clientOf(await given(["Hello there, my dear."]), { transport });
    const branch = client.branch(scope);
    const live = branch.live();
    const seen = watching(live);
    expect(live.current).toMatchObject({ status: "loading", messages: [], connection: { state: "idle" } });
    await until(() => live.current.connection.state === "live");
    expect(live.current).toMatchObject({ status: "idle", seq: 1, branch: { id: "main" } });
    const { runId } = await branch.submit("Hi");
    await until(() => live.current.status === "idle" && live.current.messages.length === 2);
    expect(textsOf(live.current)).toEqual(["Hi", "Hello there, my dear."]);
    expect(live.current).toMatchObject({ run: null, streaming: [], lastTurn: { status: "committed" } });
    expect(seen.find(({ status }) => status === "running")!.run).toMatchObject({ runId });
    const streamed = seen.flatMap(({ streaming }) => streaming.map(({ text }) => text));
    expect(streamed.at(-1)).toBe("Hello there, my dear.");
    expect(streamed.length).toBeGreaterThan(2);
    // LiveBranch-2: no picture was changed after it was shown.
    expect(seen[0]!.messages).toEqual([]);
    const { messages } = await branch.state();
    expect(live.current.messages).toEqual(messages);
  });

  test("after any number of cuts in the middle of messages, text and messages are right", async () => {
    const random = seeded(`${transport} picture`);
    const long = "a word and another one, and so on; ".repeat(8);
    const g = await given((_prompt, call) => `${call}: ${long}`);
    const { port } = g.serving;
    const line = await badLine(
      () => port,
      () => ({ bytes: 400 + Math.floor(random() * 3000), how: "cut" }),
    );
    const reader = (await clientOf(g, { url: line.url, transport })).branch(scope);
    const live = reader.live();
    const seen = watching(live);
    // Later the state would be longer than any connection lives.
    await until(() => live.current.status === "idle");
    const branch = (await clientOf(g, { url: `http://127.0.0.1:${port}` })).branch(scope);
    for (let turn = 0; turn < 6; turn++) {
      await branch.submit(`${turn}`);
      await until(async () => (await branch.state()).openTurn === undefined);
    }
    const { messages, seq } = await branch.state();
    await until(() => live.current.seq === seq);
    expect(live.current.messages).toEqual(messages);
    // Whatever was shown of a message is how it begins: nothing is missing in the middle, nothing twice.
    const whole = new Map(messages.map((message) => [message.id, textOf(message)]));
    for (const { streaming } of seen) {
      for (const { messageId, text } of streaming) expect(whole.get(messageId)!.startsWith(text)).toBe(true);
    }
  });

  test("shows compactions by hand as they are made and taken back", async () => {
    const agent = { compaction: { strategy: keepTurns(10) } };
    const g = await given((_, call) => `Answer ${call}.`, { agent });
    const branch = (await clientOf(g, { transport })).branch(scope);
    for (const n of [1, 2, 3]) await branch.run(`Question ${n}`).text();
    const live = branch.live();
    watching(live);
    await until(() => live.current.connection.state === "live");
    const before = live.current.messages;
    expect(before.length).toBe(6);
    const { id } = await branch.compact({ keep: { turns: 1 }, retention: "hard" });
    await until(() => live.current.messages.length === 2);
    await branch.pin(before[4]!.id);
    await branch.uncompact(id);
    await until(() => live.current.messages.length === 6);
    expect(live.current.messages).toEqual(before);
    await branch.compact({ keep: { turns: 1 } });
    const { seq } = await branch.state();
    await until(() => live.current.seq === seq);
    expect(live.current.messages).toEqual(before);
    await branch.run("Question 4").text();
    await until(() => live.current.messages.length === 8 && live.current.status === "idle");
  });

  test("joins in the middle of a message with what was said before", async () => {
    const passage = gate();
    const model = slowModel(["one ", "two ", "three"], passage.passed);
    const g = await given([], { agent: { model: model as never } });
    const client = await clientOf(g, { transport });
    const branch = client.branch(scope);
    const early = branch.live();
    watching(early);
    await branch.submit("Count");
    await until(() => early.current.streaming[0]?.text === "one two ");
    const late = branch.live();
    watching(late);
    await until(() => late.current.streaming[0]?.text === "one two ");
    expect(late.current.status).toBe("running");
    passage.open();
    await until(() => late.current.status === "idle" && early.current.status === "idle");
    expect(textsOf(late.current)).toEqual(["Count", "one two three"]);
    expect(late.current.messages).toEqual(early.current.messages);
  });
});

describe("compactions", () => {
  async function turn(branch: RemoteBranch, text: string): Promise<void> {
    await branch.submit(text);
    await until(async () => (await branch.state()).openTurn === undefined);
  }

  /** A picture that begins in the middle of a branch of four turns, with the number of times it was loaded. */
  async function watched() {
    const g = await given((_prompt, call) => `answer ${call + 1}`);
    let loads = 0;
    const counting: typeof fetch = (input, init) => {
      if (String(input instanceof Request ? input.url : input).includes("/state")) loads++;
      return fetch(input, init);
    };
    const branch = (await clientOf(g)).branch(scope);
    for (const n of [1, 2, 3, 4]) await turn(branch, `${n}`);
    const live = (await clientOf(g, { fetch: counting })).branch(scope).live({ last: 2 });
    watching(live);
    await until(() => live.current.status === "idle" && live.current.messages.length === 2);
    const compacted = (id: string, retention: "soft" | "hard", messages: readonly Message[], to: number): Draft => ({
      ...{ type: "history.compacted", id, at: 5, retention, from: 0, to },
      ...{ first: messages[0]!.id, last: messages[to - 1]!.id },
      replacements: [{ id: `${id}.sum`, role: "system", content: "so far" }],
    });
    const { messages } = await replay(g.store, main);
    const write = async (draft: Draft) => {
      await appendRaw(g.store, main, draft);
      const { seq } = await replay(g.store, main);
      await until(() => live.current.seq === seq);
    };
    return { branch, live, write, compacted, messages, loads: () => loads };
  }

  test("that only models see leave the picture as it is, and the next turn comes behind it", async () => {
    const { branch, live, write, compacted, messages, loads } = await watched();
    const before = live.current.messages;
    const began = loads();
    await write(compacted("h1", "soft", messages, 4));
    await write(compacted("h2", "soft", messages, 8));
    await write({ type: "history.cleared", id: "h3", at: 6, results: [] });
    expect(live.current.messages).toEqual(before);
    await turn(branch, "5");
    await until(() => textsOf(live.current).at(-1) === "answer 5");
    expect(textsOf(live.current)).toEqual(["4", "answer 4", "5", "answer 5"]);
    expect(loads()).toBe(began);
  });

  test("that people see, and taking one back, make it read the state again", async () => {
    const { branch, live, write, compacted, messages, loads } = await watched();
    const began = loads();
    await write(compacted("h1", "hard", messages, 8));
    expect(textsOf(live.current)).toEqual(["so far"]);
    expect(live.current.messages).toEqual((await branch.state()).messages);
    await write({ type: "history.restored", id: "h2", at: 6, of: "h1", overlays: [], cleared: [] });
    expect(textsOf(live.current)).toEqual(["4", "answer 4"]);
    expect(loads()).toBe(began + 2);
  });
});

/** Says all but the last word, waits, and says that. */
function slowModel(words: readonly string[], passed: Promise<void>) {
  return {
    specificationVersion: "v3" as const,
    provider: "test",
    modelId: "slow",
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error("only streams")),
    async doStream() {
      const stream = new ReadableStream({
        async start(controller) {
          controller.enqueue({ type: "stream-start", warnings: [] });
          controller.enqueue({ type: "text-start", id: "t" });
          for (const [i, delta] of words.entries()) {
            if (i === words.length - 1) await passed;
            controller.enqueue({ type: "text-delta", id: "t", delta });
          }
          controller.enqueue({ type: "text-end", id: "t" });
          const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
          controller.enqueue({ type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage });
          controller.close();
        },
      });
      return { stream };
    },
  };
}

test("reverts, renamings, tools and interrupts are shown as the server has them", async () => {
  const script = (_prompt: unknown, n: number): ScriptedReply =>
    n === 0 ? { calls: [{ name: "add", input: { a: 1, b: 2 } }] } : `Answer ${n}.`;
  const g = await given(script, { agent: { tools: { add } } });
  const branch = (await clientOf(g)).branch(scope);
  const live = branch.live();
  watching(live);
  const settle = async () => {
    await until(async () => (await branch.state()).openTurn === undefined);
    const { seq, messages } = await branch.state();
    await until(() => live.current.seq === seq);
    expect(live.current.messages).toEqual(messages);
    return messages;
  };
  await branch.submit("Add");
  const messages = await settle();
  expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant"]);
  await branch.submit("More");
  await settle();
  await branch.update({ name: "Sums" });
  await settle();
  await branch.revert({ to: messages.at(-1)!.id });
  expect(await settle()).toHaveLength(4);
  await branch.submit("And on");
  expect(await settle()).toHaveLength(6);
});

test("a picture that begins in the middle is right after a revert, too", async () => {
  const branch = (await clientOf(await given((_prompt, n) => `Answer ${n}.`))).branch(scope);
  for (const input of ["one", "two", "three"]) {
    await branch.submit(input);
    await until(async () => (await branch.state()).openTurn === undefined);
  }
  const live = branch.live({ last: 3 });
  watching(live);
  await until(() => live.current.connection.state === "live");
  expect(textsOf(live.current)).toEqual(["Answer 1.", "three", "Answer 2."]);
  await branch.revert({ toMessageIndex: 4 });
  const { seq } = await branch.get();
  await until(() => live.current.seq === seq);
  expect(textsOf(live.current)).toEqual(["Answer 0.", "two", "Answer 1."]);
});

test("a run that is interrupted leaves what was said, and says why", async () => {
  const model = held();
  const branch = (await clientOf(await given(model.script))).branch(scope);
  const live = branch.live();
  watching(live);
  await branch.submit("Hi");
  const { runId } = (await until(() => live.current.run))!;
  await branch.interrupt({ runId, reason: "enough" });
  await until(() => live.current.status === "idle");
  expect(live.current.lastTurn).toMatchObject({ status: "interrupted", reason: "enough" });
});

test("a branch that is not there, and one that is deleted, are told as an error", async () => {
  const g = await given([]);
  const client = await clientOf(g);
  const nowhere = client.branch({ ...scope, branchId: "nowhere" }).live();
  watching(nowhere);
  await until(() => nowhere.current.error);
  expect(nowhere.current).toMatchObject({ error: { code: "branch_not_found" }, connection: { state: "failed" } });
  await client.branch(scope).fork({ newBranchId: "f" });
  const fork = client.branch({ ...scope, branchId: "f" });
  const live = fork.live();
  watching(live);
  await until(() => live.current.connection.state === "live");
  await fork.delete();
  await until(() => live.current.error);
  expect(live.current).toMatchObject({ error: { code: "branch_not_found" }, connection: { state: "failed" } });
});

test("LiveBranch-3: nobody listens, nothing is asked; who leaves and comes back finds it as it is", async () => {
  const g = await given(["One."], { limits: { streams: 1 } });
  const branch = (await clientOf(g)).branch(scope);
  const live = branch.live();
  const leave = live.subscribe(() => {});
  leave();
  const again = live.subscribe(() => {});
  await until(() => live.current.connection.state === "live");
  again();
  await until(() => live.current.connection.state === "closed");
  await branch.submit("Hi");
  await until(async () => (await branch.state()).openTurn === undefined);
  expect(live.current.messages).toEqual([]);
  watching(live);
  await until(() => live.current.messages.length === 2);
});

describe("client tools", () => {
  const locate = defineTool({ description: "Where the user is.", input: z.object({ precise: z.boolean() }) });
  const script = (prompt: readonly { role: string; content: unknown }[]): ScriptedReply => {
    const last = prompt.at(-1)!;
    if (last.role === "tool")
      return `You are at ${JSON.stringify((last.content as { output: unknown }[])[0]!.output)}.`;
    return { calls: [{ name: "locate", input: { precise: true } }] };
  };

  test("are run where the client is, once, and the turn goes on", async () => {
    const g = await given(script, { agent: { tools: { locate } } });
    const branch = (await clientOf(g)).branch(scope);
    const inputs: unknown[] = [];
    const tools = { locate: { execute: (input: unknown) => inputs.push(input) && { city: "Rome" } } };
    const live = branch.live({ tools });
    watching(live);
    await branch.submit("Where am I?");
    await until(() => live.current.status === "idle" && live.current.messages.length === 4);
    expect(inputs).toEqual([{ precise: true }]);
    expect(textsOf(live.current).at(-1)).toContain("Rome");
    expect(live.current.error).toBeUndefined();
  });

  test("are run after a reload, when the call was open before", async () => {
    const g = await given(script, { agent: { tools: { locate } } });
    const branch = (await clientOf(g)).branch(scope);
    await branch.submit("Where am I?");
    const { interactions } = await until(async () => {
      const state = await branch.state();
      return state.interactions.length > 0 && state;
    });
    expect(interactions[0]).toMatchObject({ kind: "client-tool", request: { toolName: "locate" } });
    const live = branch.live({ tools: { locate: { execute: () => "Oslo" } } });
    watching(live);
    await until(() => live.current.status === "idle" && live.current.messages.length === 4);
    expect(textsOf(live.current).at(-1)).toContain("Oslo");
  });

  test("of two pages, one is taken and the other not told of a failure", async () => {
    const g = await given(script, { agent: { tools: { locate } } });
    const branch = (await clientOf(g)).branch(scope);
    const passage = gate();
    let begun = 0;
    const execute = async () => {
      if (++begun === 2) passage.open();
      await passage.passed;
      return "Rome";
    };
    const pages = [0, 1].map(() => branch.live({ tools: { locate: { execute } } }));
    for (const page of pages) watching(page);
    await until(() => pages.every(({ current }) => current.connection.state === "live"));
    await branch.submit("Where am I?");
    await until(() => pages.every(({ current }) => current.status === "idle" && current.messages.length === 4));
    expect(begun).toBe(2);
    expect(pages.map(({ current }) => current.error)).toEqual([undefined, undefined]);
    const answered = (await branch.events()).filter(({ type }) => type === "interaction.answered");
    expect(answered).toHaveLength(1);
  });
});

test("questions are shown until they are answered, by whoever it is", async () => {
  const remove = defineTool({ input: z.object({ path: z.string() }), permission: true, execute: () => "gone" });
  const script = (prompt: readonly { role: string }[]): ScriptedReply =>
    prompt.at(-1)!.role === "tool" ? "Done." : { calls: [{ name: "remove", input: { path: "a" } }] };
  const g = await given(script, { agent: { tools: { remove } } });
  const branch = (await clientOf(g)).branch(scope);
  const pages = [0, 1].map(() => branch.live());
  for (const page of pages) watching(page);
  await branch.submit("Remove a");
  await until(() => pages.every(({ current }) => current.status === "asking"));
  const [question] = pages[0]!.current.interactions;
  expect(question).toMatchObject({ kind: "permission", request: { toolName: "remove", input: { path: "a" } } });
  await branch.respond(question!.id, { approved: true });
  await expect(branch.respond(question!.id, { approved: false })).rejects.toMatchObject({ code: "interaction_closed" });
  await until(() => pages.every(({ current }) => current.status === "idle"));
  for (const { current } of pages) expect(current.interactions).toEqual([]);
});
