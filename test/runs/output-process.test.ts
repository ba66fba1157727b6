import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { createAgent } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { add, expectLegal, said } from "../agent/kit.ts";

const script = fileURLToPath(new URL("./answering.mjs", import.meta.url));
const built = fileURLToPath(new URL("../../dist/index.js", import.meta.url));

/** A database that a process leaves behind which was killed at the failpoint. */
async function leftAt(failpoint: string): Promise<string> {
  if (!existsSync(built)) throw new Error("These tests run the built package: npm run build first.");
  const directory = await mkdtemp(join(tmpdir(), "bough-answering-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const path = join(directory, "bough.db");
  const env = { ...process.env, BOUGH_FAILPOINT: failpoint };
  const { signal, stderr } = spawnSync(process.execPath, [script, path], { env, encoding: "utf8" });
  expect(signal, stderr).toBe("SIGKILL");
  return path;
}

/** Where the process dies, and what the model has yet to say then. */
const kills = [
  ["run.turn.begun:1", 2],
  ["run.reply.written:1", 1],
  ["run.result.written:1", 1],
  ["run.reply.written:2", 0],
  ["run.result.written:2", 0],
  ["run.turn.closing:1", 0],
] as const;

test.each(kills)(
  "a run killed at %s ends with the same output, asking the model %i times more",
  async (name, asked) => {
    const path = await leftAt(name);
    const replies = [
      { calls: [{ name: "add", input: { a: 1, b: 2 } }] },
      { text: "Three.", calls: [{ name: "return_output", input: { sum: 3 } }] },
    ];
    const model = scriptedModel(replies.slice(replies.length - asked));
    const agent = createAgent({ model, tools: { add }, store: `sqlite:${path}` });
    onTestFinished(() => agent.close());
    const output = { schema: z.object({ sum: z.number() }), mode: "tool" } as const;
    const result = await agent.run(undefined, { sessionId: "s", output }).result;
    expect(result).toMatchObject({
      status: "completed",
      reason: "output",
      output: { sum: 3 },
      text: "Three.",
      iterations: 2,
    });
    expect(model.calls).toHaveLength(asked);
    const { messages, turns } = await agent.loadBranch("s");
    expect(said(messages)).toEqual([
      "user: 1 and 2?",
      "assistant: add()",
      "tool: 3",
      "assistant: Three. return_output()",
      'tool: "Answer accepted."',
    ]);
    expectLegal(messages);
    expect(turns).toMatchObject([{ status: "committed" }]);
  },
);
