// Files of a session that is exported and imported, or moved to another store.

import { expect, test } from "vitest";
import { copySession } from "../../src/cli/copy/copy-session.ts";
import { digestSession } from "../../src/cli/copy/digest.ts";
import { exportSession } from "../../src/cli/copy/export.ts";
import { importSessions } from "../../src/cli/copy/import.ts";
import { ReplayClock } from "../../src/cli/copy/replay-clock.ts";
import { filesOf } from "../../src/events/files.ts";
import { createAgent, defineTool, type Message } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { given, main } from "../agent/kit.ts";
import { png } from "./files.ts";

const picture = { type: "file", mediaType: "image/png", filename: "tree.png", data: png() } as const;

test("uploads and artifacts come along, on the branches that see them; what a provider knows them by does not", async () => {
  const draw = defineTool({
    description: "Draws.",
    input: { jsonSchema: { type: "object", properties: {} } },
    async execute(_, { attach }) {
      const { part } = await attach({ name: "oaks.png", bytes: png(4, 4) });
      return { type: "content", value: [part] };
    },
    toOutput: (output) => output as never,
  });
  const script = [{ calls: [{ name: "draw", input: {} }] }, "Drawn."];
  const { agent, store } = await given(script, { tools: { draw } });
  const before = await agent.forkBranch("s", { newBranchId: "before" });
  await agent.run([picture], main).text();
  await agent.forkBranch(main, { newBranchId: "after" });
  const first = (await agent.listContent(main)).find(({ name }) => name === "tree.png");
  await agent.updateContent(main, first!.id, {
    provider: { openai: { reference: "x" } },
  });

  const lines: string[] = [];
  await exportSession(store, "s", async (line) => void lines.push(line));
  expect(lines.join()).not.toContain('"provider"');
  // As a file that somebody has written, to make use of what is not theirs.
  const forged = lines.map((line) =>
    line.replace('"origin":', '"provider":{"openai":{"reference":{"openai":"theirs"}}},"origin":'),
  );
  for (const file of [lines, forged]) {
    const clock = new ReplayClock();
    const target = memoryStore({ clock });
    const chunks = (async function* () {
      for (const line of file) yield `${line}\n`;
    })();
    for await (const staged of importSessions(chunks))
      await copySession(staged, { store: target, clock }, "s", () => {});
    expect((await digestSession(target, "s")).sha256).toBe((await digestSession(store, "s")).sha256);
    const model = scriptedModel(() => "Here.");
    const moved = createAgent({ model, store: target, tools: { draw } });
    const namesOn = async (branchId: string) =>
      (await moved.listContent({ sessionId: "s", branchId })).map(({ name }) => name).sort();
    expect(await namesOn("main")).toEqual(["oaks.png", "tree.png"]);
    expect(await namesOn("after")).toEqual(["oaks.png", "tree.png"]);
    // What was stored for an input has the position before its turn, where this one begins.
    expect(await namesOn(before.id)).toEqual(["tree.png"]);
    expect((await moved.listContent(main)).filter((each) => "provider" in each)).toEqual([]);
    await moved.run("And now?", { sessionId: "s", branchId: "after" }).text();
    const sent = model.calls[0]!.prompt.flatMap((message) => filesOf(message as Message));
    expect(sent.map(({ filename, data }) => [filename, data.type])).toEqual([
      ["tree.png", "data"],
      ["oaks.png", "data"],
    ]);
  }
});
