// What the tests of resolved and idle agents share: a server whose time is the test's.

import { setImmediate } from "node:timers/promises";
import { onTestFinished, vi } from "vitest";
import type { AgentOptions } from "../../src/index.ts";
import { scriptedModel } from "../../src/scripted/index.ts";
import { createServer, type ServerOptions } from "../../src/server/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { type ManualClock, manualClock } from "../../src/testing/index.ts";
import { answerOf, quiet, requestOf, until } from "./kit.ts";

const scopes = ["read", "write", "run", "approve", "admin"] as const;
/** Longer than the time between two scans for turns that were left. */
export const agentIdleMs = 180_000;

export const says = (text: string): AgentOptions => ({ model: scriptedModel(() => text), logger: quiet });
export const at = (agentId: string) => `/agents/${agentId}/sessions/s/branches/main`;

export function given(options: Partial<ServerOptions> = {}) {
  const clock = manualClock();
  const store = memoryStore({ clock });
  const logger = { warn: vi.fn() };
  const server = createServer({
    audit: false,
    auth: (request) => ({ tenant: request.headers.get("x-tenant") ?? "t", scopes: [...scopes] }),
    definitions: {
      models: { "scripted/a": scriptedModel(() => "stored a"), "scripted/b": scriptedModel(() => "stored b") },
    },
    logger,
    store,
    clock,
    ...options,
    limits: { agentIdleMs, idleTenantMs: 1e12, ...options.limits },
  });
  onTestFinished(() => server.close());
  const ask = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    answerOf(await server.fetch(requestOf(method, path, body, headers)));
  /** What the agent says. */
  const say = async (agentId: string, headers: Record<string, string> = {}) => {
    await ask("POST", "/sessions", { sessionId: "s" }, headers);
    const { status, body } = await ask("POST", `${at(agentId)}/inputs`, { input: "Hi" }, headers);
    if (status !== 202) throw new Error(`${status} ${body.code}`);
    const state = await until(async () => {
      const { body: now } = await ask("GET", `${at(agentId)}/state`, undefined, headers);
      return now.openTurn === undefined && now;
    });
    return state.messages.at(-1).content[0].text;
  };
  return { clock, store, server, logger, ask, say };
}

/** Lets time pass in steps that nothing which wakes up is late for. */
export async function pass(clock: ManualClock, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 5_000) {
    clock.advance(5_000);
    for (let i = 0; i < 20; i++) await setImmediate();
  }
}
