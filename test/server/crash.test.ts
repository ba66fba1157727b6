// D1, D2: a server is killed in the middle of its streams, over and over; the client's cursor is all that survives.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import type { BoughEvent } from "../../src/events/index.ts";
import { type Frame, SseReader } from "../../src/wire/index.ts";
import { scope, until } from "./kit.ts";

const child = fileURLToPath(new URL("./child.mjs", import.meta.url));
const headers = { authorization: "Bearer t", "content-type": "application/json" };

async function startServer(path: string): Promise<{ url: string; running: ChildProcess }> {
  const running = spawn(process.execPath, [child, path, "t"], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void running.kill("SIGKILL"));
  const url = await new Promise<string>((resolve, reject) => {
    createInterface(running.stdout!).once("line", resolve);
    running.once("exit", (code) => reject(new Error(`The server ended with ${code}.`)));
  });
  return { url, running };
}

test("5.12, 6.2 a server killed with -9 and started again: every kept event comes once, and every turn ends", async () => {
  const directory = await mkdtemp(join(tmpdir(), "bough-crash-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const path = join(directory, "bough.db");
  const seen: BoughEvent[] = [];
  let { url, running } = await startServer(path);
  const ask = async (method: string, route: string, body?: unknown) => {
    const response = await fetch(url + route, {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };

  /** Reads along until the connection breaks. */
  const read = async (from: string) => {
    const last = seen.at(-1)?.seq ?? 0;
    const response = await fetch(`${from}${scope}/events/live?after=${last}`, { headers }).catch(() => undefined);
    if (response?.status !== 200) return;
    const sse = new SseReader();
    const decoder = new TextDecoder();
    const reader = response.body!.getReader();
    for (;;) {
      const piece = await reader.read().catch(() => undefined);
      if (!piece || piece.done) return;
      for (const { data } of sse.read(decoder.decode(piece.value, { stream: true }))) {
        const frame = JSON.parse(data) as Frame;
        if (frame.type === "event" && frame.event.seq !== undefined) seen.push(frame.event);
      }
    }
  };
  const ends = () => seen.filter(({ type }) => type === "turn.committed" || type === "turn.ended").length;

  expect((await ask("POST", "/sessions", { sessionId: "s" })).status).toBe(201);
  let reading = read(url);
  for (let turn = 0; turn < 4; turn++) {
    expect((await ask("POST", `${scope}/inputs`, { input: `Count ${turn}` })).status).toBe(202);
    await new Promise((resolve) => setTimeout(resolve, turn * 17));
    const gone = new Promise((resolve) => running.once("exit", resolve));
    running.kill("SIGKILL");
    await gone;
    await reading;
    ({ url, running } = await startServer(path));
    reading = read(url);
    await until(() => ends() === turn + 1);
  }
  const { events } = (await ask("GET", "/sessions/s/branches/main/events")).body as { events: BoughEvent[] };
  expect(seen).toEqual(events);
  const { messages } = (await ask("GET", `${scope}/state`)).body as { messages: { role: string }[] };
  expect(messages.map(({ role }) => role)).toEqual(Array(4).fill(["user", "assistant"]).flat());
});
