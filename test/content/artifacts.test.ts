// Artifacts: files that tools and models make, as facts of their turn and content of their branch.

import { expect, test } from "vitest";
import { z } from "zod";
import { textOf } from "../../src/events/index.ts";
import { defineTool, readFileTool } from "../../src/index.ts";
import { eventsOf, factTypes, given, main, ofType, s } from "../agent/kit.ts";
import { plain } from "../children/kit.ts";
import { countingModel } from "../compaction/kit.ts";
import { png, utf8 } from "./files.ts";

const image = png(32, 32);

const draw = defineTool({
  description: "Draws a chart.",
  input: z.object({}),
  async execute(_, { attach }) {
    const { id, part } = await attach({ name: "chart.png", bytes: image, meta: { of: "oaks" } });
    return { type: "content", value: [{ type: "text", text: `Stored as ${id.slice(0, 4)}.` }, part] };
  },
  toOutput: (output) => output as never,
});
const calling = [{ calls: [{ name: "draw", input: {} }] }, "Done."];

test("a tool's file is a fact, is listed, downloaded, shown to the model, and inherited by forks", async () => {
  const { agent, model } = await given(calling, { tools: { draw } });
  const events = await eventsOf(agent.run("Draw.", s));
  const [attached] = ofType(events, "content.attached");
  const about = {
    name: "chart.png",
    mediaType: "image/png",
    size: image.length,
    kind: "artifact",
    meta: { of: "oaks" },
  };
  expect(attached).toMatchObject({ ...about, callId: expect.any(String), turnId: expect.any(String) });
  const types = await factTypes(agent);
  expect(types.indexOf("content.attached")).toBeLessThan(types.indexOf("tool.returned"));
  const [stored] = await agent.listContent("s");
  expect(stored).toMatchObject({ id: attached!.contentId, name: "chart.png", origin: "tool" });
  expect(JSON.stringify(model.calls[1]!.prompt.at(-1))).toContain("chart.png");
  const fork = await agent.forkBranch("s", { newBranchId: "fork" });
  const there = { sessionId: "s", branchId: fork.id };
  expect(await (await agent.getContent(there, attached!.contentId)).bytes()).toEqual(image);
  expect((await agent.events(there, { type: "content.attached" })).map(({ type }) => type)).toEqual([
    "content.attached",
  ]);
});

test("a fork from before it has neither the fact nor the file", async () => {
  const { agent } = await given(["Hello.", ...calling], { tools: { draw } });
  await agent.run("Hello.", s).text();
  const { messages } = await agent.loadBranch("s");
  await agent.run("Draw.", s).text();
  const fork = await agent.forkBranch("s", { from: messages.at(-1)!.id, newBranchId: "fork" });
  expect(await agent.listContent({ sessionId: "s", branchId: fork.id })).toEqual([]);
});

test("a picture of the model is attached to its message", async () => {
  const { agent } = await given([{ text: "Here.", files: [{ mediaType: "image/png", data: image }] }]);
  const run = agent.run("Draw.", s);
  const [attached] = ofType(await eventsOf(run), "content.attached");
  const { messages } = await run.result;
  expect(attached).toMatchObject({ kind: "artifact", messageId: messages.at(-1)!.id, size: image.length });
  expect((await agent.listContent("s"))[0]).toMatchObject({ origin: "model" });
});

test("a long output becomes a file, with its beginning and end left; read_file reads it", async () => {
  const text = Array.from({ length: 20_000 }, (_, i) => `line ${i}`).join("\n");
  const dump = defineTool({ description: "Dumps.", input: z.object({}), overflow: "artifact", execute: () => text });
  const { agent, model } = await given(
    (prompt, index) => {
      if (index === 0) return { calls: [{ name: "dump", input: {} }] };
      const id = /id: \\*"([0-9a-f]{64})/.exec(JSON.stringify(prompt))![1]!;
      return index === 1 ? { calls: [{ name: "read_file", input: { id, from: 100_000, to: 100_020 } }] } : "Done.";
    },
    { tools: { dump, read_file: readFileTool() } },
  );
  await agent.run("Dump.", s).text();
  const result = (await agent.loadBranch("s")).messages[2]!.content as unknown as [{ output: { value: string } }];
  const { value } = result[0].output;
  expect(value.length).toBeLessThan(13_000);
  expect(value.startsWith("line 0\nline 1\n") && value.endsWith("line 19999")).toBe(true);
  expect(JSON.stringify(model.calls[2]!.prompt.at(-1))).toContain(
    JSON.stringify(text.slice(100_000, 100_020)).slice(1, -1),
  );
  expect(await factTypes(agent)).toContain("content.attached");
});

test("a file stays within the model's reach when its output is cleared, and when it is summarised", async () => {
  const text = "word ".repeat(20_000);
  const dump = defineTool({ description: "Dumps.", input: z.object({}), overflow: "artifact", execute: () => text });
  let asked = 0;
  const reply = () => (++asked <= 2 ? plain(asked === 1 ? "draw" : "dump") : asked === 3 ? plain("wait") : "Done.");
  const model = countingModel({ reply });
  const wait = defineTool({ input: z.object({}), execute: () => "tick ".repeat(1600) });
  const clear = { batches: 1, gain: 100 };
  const { agent } = await given([], { model, tools: { draw, dump, wait }, compaction: { window: 6_000, clear } });
  await agent.run("Go.", s).text();
  const content = await agent.listContent("s");
  const [chart, whole] = [
    content.find(({ name }) => name === "chart.png")!,
    content.find(({ size }) => size > 50_000)!,
  ];
  const lines = [`chart.png, image/png: id ${chart.id}`, `whole output of dump: id ${whole.id}`];
  const prompt = JSON.stringify(model.calls.at(-1)!.prompt);
  expect(prompt).toContain("[Output of draw cleared: ");
  for (const line of lines) expect(prompt).toContain(`characters. Files in it: ${line}. Call it again if needed.]`);
  await agent.uncompact(main);
  await agent.compact(main, { keep: { turns: 0 } });
  const [summary] = (await agent.loadBranch("s")).transcript();
  for (const line of lines) expect(textOf(summary!)).toContain(`\n- ${line}\n`);
});

test("a short output of such a tool stays, and so does a long one of any other", async () => {
  const long = "x".repeat(70_000);
  const short = defineTool({
    description: "Short.",
    input: z.object({}),
    overflow: "artifact",
    execute: () => "short",
  });
  const whole = defineTool({ description: "Whole.", input: z.object({}), execute: () => long });
  const calls = [
    { name: "short", input: {} },
    { name: "whole", input: {} },
  ];
  const { agent } = await given([{ calls }, "Done."], { tools: { short, whole } });
  await agent.run("Both.", s).text();
  expect(await agent.listContent("s")).toEqual([]);
  expect(JSON.stringify((await agent.loadBranch("s")).messages[2])).toContain(long);
});

test("a tool reads what the branch sees, by id and by address", async () => {
  const seen: string[] = [];
  const look = defineTool({
    description: "Looks.",
    input: z.object({ id: z.string() }),
    async execute({ id }, { content }) {
      const { bytes, name } = await content.get(id);
      seen.push(`${name} ${new TextDecoder().decode(bytes)}`);
      return (await content.text(id)).length;
    },
  });
  const { agent } = await given(
    async (_, index) => (index === 0 ? { calls: stored.map((id) => ({ name: "look", input: { id } })) } : "Done."),
    { tools: { look } },
  );
  const { id, uri } = await agent.putContent(main, { bytes: utf8("Oak."), mediaType: "text/plain", name: "oak.txt" });
  const stored = [id, uri];
  await agent.run("Look.", s).text();
  expect(seen).toEqual(["oak.txt Oak.", "oak.txt Oak."]);
});
