import { describe, expect, test } from "vitest";
import { createAgent, keepTurns } from "../../src/index.ts";
import { scriptedModel } from "../../src/scripted/index.ts";
import { sqliteStore } from "../../src/stores/sqlite/index.ts";
import { bough, fill, scratch } from "./kit.ts";

const url = "sqlite:bough.db";

async function talk(cwd: string): Promise<string[]> {
  const model = scriptedModel(["One.", "Two.", "Three.", "Four."]);
  const store = await sqliteStore(`${cwd}/bough.db`);
  const agent = createAgent({ model, store, instructions: "Be brief.", compaction: { strategy: keepTurns(1) } });
  await agent.createSession("long");
  for (const input of ["First", "Second", "Third"]) await agent.run(input, "long").result;
  await agent.compact("long", { keep: { turns: 1 } });
  await agent.run("Fourth", "long").result;
  const { messages } = await agent.loadBranch("long");
  await agent.close();
  return messages.filter(({ role }) => role === "assistant").map(({ id }) => id);
}

describe("bough prompts", () => {
  test("shows what a model was sent, and where two prompts differ", async () => {
    const cwd = scratch();
    const replies = await talk(cwd);
    const prompts = (...words: string[]) => bough(cwd, "prompts", ...words, "--store", url);
    const shown = await prompts("show", "long");
    expect(shown).toMatchObject({ code: 0, stderr: "" });
    expect(shown.stdout).toMatch(
      new RegExp(`^Reply ${replies[3]} of bough/scripted, on the log up to \\d+\nVerified: .{32}\n`),
    );
    expect(shown.stdout).toMatch(/system +instructions +Be brief\.\nuser +message \S+ +Third\n/);
    const { prompt } = JSON.parse((await prompts("show", "long", "main", "--message", replies[0]!, "--json")).stdout);
    expect(prompt).toMatchObject({
      messageId: replies[0],
      isVerified: true,
      messages: [{ role: "system" }, { role: "user" }],
    });
    const lost = await prompts("diff", "long");
    expect(lost.stdout).toMatch(
      /^88 of 338 bytes begin the later prompt .*\nThe cache is lost .*: compaction \w+\nearlier {2}message /,
    );
    const kept = await prompts("diff", "long", "--from", replies[0]!, "--to", replies[1]!);
    expect(kept.stdout).toContain("(100.0 %)");
    expect(kept.stdout).toContain("The provider's cache holds.");
    const { diff } = JSON.parse((await prompts("diff", "long", "--json")).stdout);
    expect(diff).toMatchObject({ isPrefix: false, first: { change: "compaction" } });
    expect((await prompts("show", "long", "--message", "nothing")).stderr).toContain("(message_not_on_branch)");
  });

  test("a branch without replies has none to show", async () => {
    const cwd = scratch();
    await fill(`sqlite:${cwd}/bough.db`, async (sessions) => void (await sessions.createSession("empty")));
    expect(await bough(cwd, "prompts", "show", "empty", "--store", url)).toMatchObject({ code: 2 });
    expect(await bough(cwd, "prompts", "diff", "empty", "--store", url)).toMatchObject({ code: 2 });
  });

  test("an export, an import and a copy tell the same", async () => {
    const cwd = scratch();
    const [first] = await talk(cwd);
    const show = async (store: string) =>
      (await bough(cwd, "prompts", "show", "long", "--message", first!, "--store", store, "--json")).stdout;
    const prompt = await show(url);
    expect(prompt).toContain('"isVerified":true');
    expect((await bough(cwd, "store", "copy", "--from", url, "--to", "./copied")).code).toBe(0);
    expect(await show("./copied")).toBe(prompt);
    expect((await bough(cwd, "sessions", "export", "long", "--store", url, "--output", "long.jsonl")).code).toBe(0);
    expect((await bough(cwd, "sessions", "import", "long.jsonl", "--store", "sqlite:other.db")).code).toBe(0);
    expect(await show("sqlite:other.db")).toBe(prompt);
  });
});
