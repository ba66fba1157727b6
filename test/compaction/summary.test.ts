// What summary() asks for and shows: as text for another model, with the files, without reasoning, over an earlier summary.

import { expect, test } from "vitest";
import type { NewMessage } from "../../src/events/index.ts";
import { createAgent, summary } from "../../src/index.ts";
import { type ScriptedReply, scriptedModel } from "../../src/scripted/index.ts";
import { said } from "../agent/kit.ts";
import { tokensIn } from "./kit.ts";

const call = { type: "tool-call", toolCallId: "c1", toolName: "read", input: { path: "a.txt" } } as const;

async function talked(options: Parameters<typeof summary>[0] = {}, reply: () => ScriptedReply = () => "Brief.") {
  const model = scriptedModel(() => reply());
  const strategy = summary({ via: "text", ...options });
  const agent = createAgent({ model, compaction: { strategy, window: 100_000 }, retry: { attempts: 1 } });
  await agent.createSession("s");
  const add = (...messages: NewMessage[]) => agent.appendTurn("s", messages);
  const compact = (turns = 1) => agent.compact("s", { keep: { turns } });
  return { agent, model, add, compact };
}

const shown = async ({ agent }: Awaited<ReturnType<typeof talked>>) =>
  said((await agent.loadBranch("s")).transcript())[0];

test("a range as text has who said what, calls, results that are cut, files by name, and no reasoning", async () => {
  const given = await talked();
  const { model, add, compact, agent } = given;
  const image = {
    type: "file",
    mediaType: "image/png",
    filename: "tree.png",
    data: { type: "url", url: "bough://content/c9" },
  };
  await add({ role: "user", content: [{ type: "text", text: "Read it." }, image] as never });
  const turn = await agent.beginTurn("s", "And a.txt?");
  await turn.add({ role: "assistant", content: [{ type: "reasoning", text: "SECRET THOUGHT" }, call] as never });
  await turn.toolReturned({ callId: "c1", toolName: "read", output: { type: "text", value: "x".repeat(5_000) } });
  await turn.commit({ messages: [{ role: "assistant", content: "It is long." }] });
  await add({ role: "user", content: "Thanks." });
  await compact();
  const { prompt, tools } = model.calls[0]!;
  expect(prompt).toHaveLength(1);
  expect(tools).toBeUndefined();
  const [text] = said(prompt);
  expect(text).toContain("[User]: Read it.\n[User]: [image/png tree.png]");
  expect(text).toContain('[Call] read({"path":"a.txt"})');
  expect(text).toMatch(/\[Result\] read: x{2000}… \[3000 more characters\]/);
  expect(text).toContain("[Assistant]: It is long.");
  expect(text).not.toContain("SECRET THOUGHT");
  expect(text).not.toContain("Thanks.");
  // What can still be reached by its address is named in the summary's head.
  expect(await shown(given)).toMatch(
    /^user: Earlier conversation, summarised; 5 messages from \S+ to \S+\.\n\nFiles in it:\n- tree\.png, image\/png: bough:\/\/content\/c9\n\nBrief\.$/,
  );
});

test("over an earlier summary, that is carried over and its messages are counted", async () => {
  const given = await talked();
  const { model, add, compact } = given;
  for (let n = 1; n <= 4; n++) await add({ role: "user", content: `Question ${n}` });
  await compact(2);
  await compact(1);
  expect(said(model.calls[0]!.prompt)[0]).not.toContain("Carry over everything");
  expect(said(model.calls[1]!.prompt)[0]).toContain("[User]: Earlier conversation, summarised; 2 messages");
  expect(said(model.calls[1]!.prompt)[0]).toContain("Carry over everything in it that is still true");
  expect(await shown(given)).toMatch(/^user: Earlier conversation, summarised; 3 messages/);
});

test("another model gets the range as text, within its window; refused once, it gets half", async () => {
  const refused = { error: { statusCode: 400, message: "prompt is too long: 9 tokens > 4000 maximum" } };
  const replies: ScriptedReply[] = [refused, "Brief."];
  const other = Object.assign(
    scriptedModel(() => replies.shift()!),
    { modelId: "small" },
  );
  const { model, add, compact } = await talked({
    model: other as never,
    prompt: "In one line, please.",
    maxTokens: 99,
  });
  for (let n = 1; n <= 400; n++) await add({ role: "user", content: `Question ${n} ${"lorem ipsum ".repeat(100)}` });
  const made = await compact();
  expect(made).toMatchObject({ strategy: "summary", model: "bough/small" });
  expect(model.calls).toEqual([]);
  const [first, second] = other.calls;
  expect(tokensIn(second!.prompt)).toBeLessThan(0.6 * tokensIn(first!.prompt));
  const [text] = said(second!.prompt);
  expect(text).toContain("[User]: Question 1 ");
  expect(text).toMatch(/\[\d+ messages are left out here\.\]/);
  expect(text).toContain("[User]: Question 399 ");
  expect(text).toContain("In one line, please.");
  expect(second!.maxOutputTokens).toBe(99);
});
