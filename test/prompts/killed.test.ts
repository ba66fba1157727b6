// Processes that die (kill -9) between a model's answer and its fact, or right after it: every reply in the log is proved to be
// the answer to what its call was sent, in whichever process.

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type { Failpoint } from "../../src/base/failpoint.ts";
import { openSessions } from "../../src/index.ts";
import type { ScriptedCall, ScriptedModel } from "../../src/scripted/index.ts";
import { freshDirectory } from "../server/kit.ts";
import { expectProved } from "./kit.ts";

const script = fileURLToPath(new URL("killed.mjs", import.meta.url));

function live(
  options: object,
  failpoint?: string,
): Promise<{ signal: string | null; code: number | null; err: string }> {
  return new Promise((resolve) => {
    const env = { ...process.env, ...(failpoint && { BOUGH_FAILPOINT: failpoint }) };
    const child = spawn(process.execPath, [script, JSON.stringify(options)], { env });
    let err = "";
    child.stderr.on("data", (chunk) => (err += chunk));
    child.on("close", (code, signal) => resolve({ signal, code, err }));
  });
}

describe("killed at", () => {
  test.each<[Failpoint, number]>([
    ["run.turn.closing", 2],
    ["run.turn.closed", 2],
    ["run.reply.written", 2],
    ["run.tool.executed", 3],
    ["run.compaction.written", 1],
  ])("%s, time %i", async (failpoint, time) => {
    const folder = freshDirectory();
    const options = { store: `sqlite:${join(folder, "bough.db")}`, calls: join(folder, "calls.jsonl"), turns: 4 };
    expect(await live(options, `${failpoint}:${time}`)).toMatchObject({ signal: "SIGKILL" });
    expect(await live(options)).toMatchObject({ code: 0, err: "" });
    const lines = readFileSync(options.calls, "utf8").trimEnd().split("\n");
    const calls = lines.map((line) => JSON.parse(line) as ScriptedCall);
    const sessions = await openSessions(options.store);
    const prompts = await expectProved(sessions, "s", { calls } as unknown as ScriptedModel);
    expect(prompts.length).toBe(8);
    expect(calls.length).toBeGreaterThanOrEqual(prompts.length);
    await sessions.close();
  });
});
