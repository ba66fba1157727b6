// Files that children make: content of the parent's branch, whatever becomes of the child's.

import { expect, test } from "vitest";
import { filesOf } from "../../src/events/files.ts";
import { defineTool, type Message, readFileTool } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { given, main, s } from "../agent/kit.ts";
import { png } from "../content/files.ts";
import { calls, hidden, plain, tool, worker } from "./kit.ts";

const table = "year,oaks\n1900,3\n";
const save = defineTool({
  description: "Saves a table.",
  input: { jsonSchema: { type: "object", properties: {} } },
  async execute(_, { attach }) {
    await attach({ name: "oaks.csv", bytes: new TextEncoder().encode(table), meta: { rows: 1 } });
    return "saved";
  },
});
const drawing = { text: "Counted.", files: [{ mediaType: "image/png", data: png() }] };
const lastResult = (message: Message | undefined) => JSON.stringify(message?.content);

test.each(["fork", "fresh", "new"] as const)("of a child on a branch that is %s", async (branch) => {
  const clerk = worker("clerk", [plain("save"), drawing], { tools: { save } });
  const { agent, model, again } = await given([calls("clerk"), "Thanks.", "Later."], {
    tools: {
      clerk: tool(clerk, branch === "new" ? ({ branch: "fresh", session: "new" } as never) : { branch }),
      read_file: readFileTool(),
    },
  });
  const before = await agent.forkBranch("s", { newBranchId: "before" });
  await agent.run("Count the oaks.", main).text();
  const files = await agent.listContent(main);
  expect(files.map(({ mediaType, branchId }) => [mediaType, branchId]).sort()).toEqual([
    ["image/png", "main"],
    ["text/csv", "main"],
  ]);
  const csv = files.find(({ name }) => name === "oaks.csv")!;
  expect(new TextDecoder().decode(await (await agent.getContent(main, csv.id)).bytes())).toBe(table);
  const attached = await agent.events(main, { type: "content.attached" });
  expect(attached).toHaveLength(2);
  expect(attached).toContainEqual(
    expect.objectContaining({ contentId: csv.id, kind: "artifact", name: "oaks.csv", meta: { rows: 1 } }),
  );
  const { messages } = await agent.loadBranch(main);
  expect(lastResult(messages.find(({ role }) => role === "tool"))).toContain(`- oaks.csv, text/csv: id ${csv.id}`);
  expect(JSON.stringify(model.calls[1]!.prompt)).toContain(csv.id);
  expect(await agent.listContent({ sessionId: "s", branchId: before.id })).toEqual([]);
  // They outlive the child, and forks of the parent have them.
  const fork = await agent.forkBranch(main, { newBranchId: "after" });
  for (const { id } of await hidden(agent)) await agent.deleteBranch({ sessionId: "s", branchId: id });
  expect(await agent.listContent({ sessionId: "s", branchId: fork.id })).toHaveLength(2);
  const restarted = scriptedModel([{ calls: [{ name: "read_file", input: { id: csv.id } }] }, "Read."]);
  const { messages: later } = await again({ model: restarted }).run("Read it.", { sessionId: "s", branchId: fork.id })
    .result;
  expect(JSON.stringify(later)).toContain("1900,3");
});

test("a tool that spawns gets them, and may show them to its model", async () => {
  const painter = worker("painter", [drawing]);
  const paint = defineTool({
    description: "Paints.",
    input: { jsonSchema: { type: "object", properties: {} } },
    async execute(_, { spawn }) {
      const { text, files } = await spawn(painter.agent, "Paint.");
      return { type: "content", value: [{ type: "text", text }, ...files] };
    },
    toOutput: (output) => output as never,
  });
  const { agent, model } = await given([plain("paint"), "Nice."], { tools: { paint } });
  await agent.run("Paint an oak.", s).text();
  expect(filesOf(model.calls[1]!.prompt.at(-1) as Message)).toMatchObject([
    { mediaType: "image/png", data: { type: "data", data: png() } },
  ]);
});

test("a child of a child hands its files on, once each", async () => {
  const clerk = worker("clerk", [plain("save"), "Counted."], { tools: { save } });
  const chief = worker("chief", [calls("clerk"), "Done."], { tools: { clerk: tool(clerk) } });
  const { agent } = await given([calls("chief"), "Thanks."], { tools: { chief: tool(chief) } });
  await agent.run("Count.", s).text();
  expect((await agent.listContent(main)).map(({ name }) => name)).toEqual(["oaks.csv"]);
  expect(await agent.events(main, { type: "content.attached" })).toHaveLength(1);
});

test("a parent that died after its child had ended has them once, when another process goes on", async () => {
  const clerk = () => worker("clerk", [plain("save"), "Counted."], { tools: { save } });
  const stop = new AbortController();
  const slow = defineTool({
    description: "Takes long.",
    input: { jsonSchema: { type: "object", properties: {} } },
    async execute(_, { spawn }) {
      const { files } = await spawn(clerk().agent, "Count.", { key: "a" });
      if (!stop.signal.aborted) {
        stop.abort();
        return new Promise<never>(() => {});
      }
      return files.map(({ filename }) => filename).join();
    },
  });
  const { agent, again } = await given([plain("slow"), "Thanks."], { tools: { slow } });
  const first = again();
  void first.run("Go.", s).result.catch(() => {});
  await new Promise<void>((resolve) => stop.signal.addEventListener("abort", () => resolve()));
  await first.close();
  const restarted = scriptedModel(["Thanks."]);
  await again({ model: restarted }).run(undefined, s).text();
  expect(lastResult(restarted.calls[0]!.prompt.at(-1) as Message)).toContain("oaks.csv");
  expect(await agent.listContent(main)).toHaveLength(1);
  expect(await agent.events(main, { type: "content.attached" })).toHaveLength(1);
});
