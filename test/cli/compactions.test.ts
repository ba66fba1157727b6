import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createAgent, defineTool } from "../../src/index.ts";
import { countingModel } from "../compaction/kit.ts";
import { bough, fill, inStore, scratch } from "./kit.ts";

const url = "sqlite:bough.db";

describe("bough compactions", () => {
  test("makes, lists and takes back, and the log tells of it", async () => {
    const cwd = scratch();
    await fill(`sqlite:${cwd}/bough.db`, async (sessions) => {
      await sessions.createSession("long");
      for (let n = 1; n <= 12; n++) await sessions.appendTurn("long", [{ role: "user", content: `Question ${n}` }]);
    });
    const compactions = (...words: string[]) => bough(cwd, "compactions", ...words, "--store", url);
    expect((await compactions("ls", "long")).stdout).toBe("The branch has no compactions.\n");
    const added = await compactions("add", "long");
    expect(added.stdout).toMatch(/^Compacted 2 messages as \S+; the log keeps them\.\n$/);
    const { compaction } = JSON.parse(
      (await compactions("add", "long", "main", "--keep", "3", "--hard", "--json")).stdout,
    );
    expect(compaction).toMatchObject({ retention: "hard", messages: 9, strategy: "keepTurns", inForce: true });
    expect((await compactions("add", "long", "--keep", "3", "--hard")).stderr).toContain("(nothing_to_compact)");
    expect(await compactions("add", "long", "--keep", "x")).toMatchObject({ code: 2 });
    const { stdout } = await compactions("ls", "long");
    expect(stdout).toMatch(
      new RegExp(`${compaction.id} .* hard +9 messages +keepTurns +yes\n.* soft +2 messages +keepTurns +no\n$`),
    );
    expect((await bough(cwd, "sessions", "show", "long", "--store", url)).stdout).toMatch(/main +3 +/);
    const tail = () => bough(cwd, "events", "tail", "long", "--store", url);
    expect((await tail()).stdout).toMatch(/history\.compacted {5}\{"retention":"hard","messages":9,/);
    expect((await compactions("rm", "long")).stdout).toBe(`Took back ${compaction.id}.\n`);
    expect((await compactions("rm", "long", "--id", "nothing")).stderr).toContain("(compaction_not_found)");
    expect(JSON.parse((await compactions("rm", "long", "--json")).stdout)).toMatchObject({
      compaction: { retention: "soft", inForce: false },
    });
    expect((await tail()).stdout).toMatch(/history\.restored {6}\{"inForce":0,/);
  });

  test("lists and takes back what a run cleared", async () => {
    const cwd = scratch();
    await inStore(`sqlite:${cwd}/bough.db`, async (store, clock) => {
      let reads = 0;
      const reply = () => (reads < 9 ? { calls: [{ name: "read", input: { reads } }] } : "Done.");
      const model = countingModel({ reply });
      const tools = { read: defineTool({ input: {}, execute: () => `page ${++reads} ${"word ".repeat(500)}` }) };
      const compaction = { window: 6_000, clear: { gain: 500 } };
      const agent = createAgent({ model, tools, store, clock, compaction });
      await agent.createSession("long");
      await agent.run("Read nine pages.", "long").result;
    });
    const compactions = (...words: string[]) => bough(cwd, "compactions", ...words, "long", "--store", url);
    const { stdout } = await compactions("ls");
    const [, id, outputs] = /\n(\S+) .* soft +(\d+) outputs +yes\n$/.exec(stdout)!;
    expect(Number(outputs)).toBeGreaterThan(1);
    expect((await compactions("rm")).stdout).toBe(`Took back ${id}.\n`);
    expect((await compactions("ls")).stdout).toBe("The branch has no compactions.\n");
  });

  test("pins messages, which compactions then keep", async () => {
    const cwd = scratch();
    const ids: string[] = [];
    await fill(`sqlite:${cwd}/bough.db`, async (sessions) => {
      await sessions.createSession("long");
      for (let n = 1; n <= 4; n++) await sessions.appendTurn("long", [{ role: "user", content: `Question\n${n}` }]);
      ids.push(...(await sessions.loadBranch("long")).messages.map(({ id }) => id));
      await sessions.forkBranch({ sessionId: "long", branchId: "main" }, { newBranchId: "f" });
    });
    const pins = (verb: string, ...words: string[]) =>
      bough(cwd, "pins", verb, "long", ...words, "--branch", "main", "--store", url);
    expect((await pins("ls")).stdout).toBe("The branch has no pinned messages.\n");
    expect((await pins("add", ids[1]!)).stdout).toBe(`Pinned ${ids[1]}: later compactions keep it verbatim.\n`);
    expect((await pins("ls")).stdout).toMatch(new RegExp(`\n${ids[1]} .* user +Question 2\n$`));
    expect(JSON.parse((await pins("ls", "--json")).stdout)).toEqual({ pins: [ids[1]] });
    expect(await pins("add", "nothing")).toMatchObject({ code: 1, stderr: expect.stringContaining("not_on_branch") });
    const { stdout } = await bough(cwd, "compactions", "add", "long", "main", "--keep", "1", "--json", "--store", url);
    expect(JSON.parse(stdout).compaction).toMatchObject({ messages: 3, kept: 1 });
    expect((await pins("rm", ids[1]!)).stdout).toBe(`Unpinned ${ids[1]}.\n`);
    expect(await pins("rm", ids[1]!)).toMatchObject({ code: 2, stderr: expect.stringContaining("is not pinned") });
  });

  test("an export and a copy of a compacted session have what it had", async () => {
    const cwd = scratch();
    await fill(`sqlite:${cwd}/bough.db`, async (sessions) => {
      await sessions.createSession("long");
      for (let n = 1; n <= 6; n++) await sessions.appendTurn("long", [{ role: "user", content: `Question ${n}` }]);
      await sessions.pin("long", (await sessions.loadBranch("long")).messages[0]!.id);
      await sessions.compact("long", { keep: { turns: 2 }, retention: "hard" });
      await sessions.forkBranch("long", { newBranchId: "f", compaction: { keep: { turns: 1 } } });
    });
    const picture = async (place: string) => {
      let seen: unknown;
      await fill(`sqlite:${cwd}/${place}`, async (sessions) => {
        const both = ["main", "f"].map(async (branchId) => {
          const scope = { sessionId: "long", branchId };
          const branch = await sessions.loadBranch(scope);
          return [
            branch.messages,
            branch.transcript(),
            await sessions.listCompactions(scope),
            await sessions.listPins(scope),
          ];
        });
        seen = await Promise.all(both);
      });
      return seen;
    };
    const before = await picture("bough.db");
    expect(JSON.stringify(before)).toContain('"reason":"fork"');
    const copied = await bough(cwd, "store", "copy", "--from", url, "--to", "sqlite:copy.db");
    expect(copied.code).toBe(0);
    expect(await picture("copy.db")).toEqual(before);
    const { stdout } = await bough(cwd, "sessions", "export", "long", "--store", url);
    writeFileSync(join(cwd, "export.jsonl"), stdout);
    expect((await bough(cwd, "sessions", "import", "export.jsonl", "--store", "sqlite:import.db")).code).toBe(0);
    expect(await picture("import.db")).toEqual(before);
  });
});
