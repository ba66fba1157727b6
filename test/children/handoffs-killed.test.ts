// A process that dies (kill -9) around a handoff: the next one goes on with the agent that the log says.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import type { Failpoint } from "../../src/base/failpoint.ts";
import { openSessions } from "../../src/index.ts";
import { checkLogs } from "../../src/testing/index.ts";
import { said } from "../agent/kit.ts";

const script = fileURLToPath(new URL("handoffs-killed.mjs", import.meta.url));

function live(store: string, failpoint?: string): Promise<string | number | null> {
  return new Promise((resolve) => {
    const env = { ...process.env, ...(failpoint && { BOUGH_FAILPOINT: failpoint }) };
    const child = spawn(process.execPath, [script, JSON.stringify({ store })], { env, stdio: "inherit" });
    child.on("close", (code, signal) => resolve(signal ?? code));
  });
}

test.each<[string, Failpoint, number]>([
  ["sqlite", "run.reply.written", 1],
  ["sqlite", "run.tool.executed", 1],
  ["sqlite", "run.handed", 1],
  ["sqlite", "run.reply.written", 2],
  ["sqlite", "run.tool.executed", 2],
  ["sqlite", "run.turn.closing", 1],
  ["file", "run.handed", 1],
])("on %s, killed at %s, pass %i", async (kind, failpoint, pass) => {
  const folder = mkdtempSync(join(tmpdir(), "bough-handoff-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const store = kind === "sqlite" ? `sqlite:${folder}/bough.db` : join(folder, "log");
  expect(await live(store, `${failpoint}:${pass}`)).toBe("SIGKILL");
  expect(await live(store)).toBe(0);
  const sessions = await openSessions(store);
  const { messages, turns, state } = await sessions.loadBranch("s");
  expect(turns).toHaveLength(1);
  expect(said(messages)).toEqual([
    "user: What do I owe?",
    "assistant: handoff_to_billing()",
    'tool: "Handed over."',
    "assistant: look()",
    'tool: "17 euros"',
    "assistant: You owe 17 euros.",
  ]);
  expect(state).toMatchObject({ "@agent": ["billing"] });
  expect(await sessions.events("s", { type: "turn.handed" })).toHaveLength(1);
  expect(await checkLogs(sessions.store)).toEqual([]);
  await sessions.close();
});
