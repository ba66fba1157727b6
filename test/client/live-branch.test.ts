// The picture of a branch: what a screen shows is what the server has, whatever happens on the way.

import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import type { BranchPicture, LiveBranch } from "../../src/client/index.ts";
import { textOf } from "../../src/events/index.ts";
import { defineTool } from "../../src/index.ts";
import type { ScriptedReply } from "../../src/scripted/index.ts";
import { add, gate, given, held, until } from "../server/kit.ts";
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
    const branch = client.open(scope);
    const live = branch.watch();
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
    // L2: no picture was changed after it was shown.
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
    const reader = (await clientOf(g, { url: line.url, transport })).open(scope);
    const live = reader.watch();
    const seen = watching(live);
    // Later the state would be longer than any connection lives.
    await until(() => live.current.status === "idle");
    const branch = (await clientOf(g, { url: `http://127.0.0.1:${port}` })).open(scope);
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

  test("joins in the middle of a message with what was said before", async () => {
    const passage = gate();
    const model = slowModel(["one ", "two ", "three"], passage.passed);
    const g = await given([], { agent: { model: model as never } });
    const client = await clientOf(g, { transport });
    const branch = client.open(scope);
    const early = branch.watch();
    watching(early);
    await branch.submit("Count");
    await until(() => early.current.streaming[0]?.text === "one two ");
    const late = branch.watch();
    watching(late);
    await until(() => late.current.streaming[0]?.text === "one two ");
    expect(late.current.status).toBe("running");
    passage.open();
    await until(() => late.current.status === "idle" && early.current.status === "idle");
    expect(textsOf(late.current)).toEqual(["Count", "one two three"]);
    expect(late.current.messages).toEqual(early.current.messages);
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
  const branch = (await clientOf(g)).open(scope);
  const live = branch.watch();
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
  const branch = (await clientOf(await given((_prompt, n) => `Answer ${n}.`))).open(scope);
  for (const input of ["one", "two", "three"]) {
    await branch.submit(input);
    await until(async () => (await branch.state()).openTurn === undefined);
  }
  const live = branch.watch({ last: 3 });
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
  const branch = (await clientOf(await given(model.script))).open(scope);
  const live = branch.watch();
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
  const nowhere = client.open({ ...scope, branchId: "nowhere" }).watch();
  watching(nowhere);
  await until(() => nowhere.current.error);
  expect(nowhere.current).toMatchObject({ error: { code: "branch_not_found" }, connection: { state: "failed" } });
  await client.open(scope).fork({ newBranchId: "f" });
  const fork = client.open({ ...scope, branchId: "f" });
  const live = fork.watch();
  watching(live);
  await until(() => live.current.connection.state === "live");
  await fork.delete();
  await until(() => live.current.error);
  expect(live.current).toMatchObject({ error: { code: "branch_not_found" }, connection: { state: "failed" } });
});

test("L3: nobody listens, nothing is asked; who leaves and comes back finds it as it is", async () => {
  const g = await given(["One."], { limits: { streams: 1 } });
  const branch = (await clientOf(g)).open(scope);
  const live = branch.watch();
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
    const branch = (await clientOf(g)).open(scope);
    const inputs: unknown[] = [];
    const tools = { locate: { execute: (input: unknown) => inputs.push(input) && { city: "Rome" } } };
    const live = branch.watch({ tools });
    watching(live);
    await branch.submit("Where am I?");
    await until(() => live.current.status === "idle" && live.current.messages.length === 4);
    expect(inputs).toEqual([{ precise: true }]);
    expect(textsOf(live.current).at(-1)).toContain("Rome");
    expect(live.current.error).toBeUndefined();
  });

  test("are run after a reload, when the call was open before", async () => {
    const g = await given(script, { agent: { tools: { locate } } });
    const branch = (await clientOf(g)).open(scope);
    await branch.submit("Where am I?");
    const { interactions } = await until(async () => {
      const state = await branch.state();
      return state.interactions.length > 0 && state;
    });
    expect(interactions[0]).toMatchObject({ kind: "client-tool", request: { toolName: "locate" } });
    const live = branch.watch({ tools: { locate: { execute: () => "Oslo" } } });
    watching(live);
    await until(() => live.current.status === "idle" && live.current.messages.length === 4);
    expect(textsOf(live.current).at(-1)).toContain("Oslo");
  });

  test("of two pages, one is taken and the other not told of a failure", async () => {
    const g = await given(script, { agent: { tools: { locate } } });
    const branch = (await clientOf(g)).open(scope);
    const passage = gate();
    let begun = 0;
    const execute = async () => {
      if (++begun === 2) passage.open();
      await passage.passed;
      return "Rome";
    };
    const pages = [0, 1].map(() => branch.watch({ tools: { locate: { execute } } }));
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
  const branch = (await clientOf(g)).open(scope);
  const pages = [0, 1].map(() => branch.watch());
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
