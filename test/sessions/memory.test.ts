import { expect, test } from "vitest";
import { createAgent } from "../../src/agent/index.ts";
import { scriptedModel } from "../../src/scripted/index.ts";
import type { Sessions } from "../../src/sessions/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { says } from "./kit.ts";
import { describeSessions } from "./suite.ts";

describeSessions({
  kind: "memory",
  async open({ clock }) {
    // With segments, which it has no use for: what sessions do with them is the same on every store that has.
    const store = memoryStore({ clock, segments: true });
    return { store, second: async () => store, dispose: () => store.close() };
  },
});

/** More messages than a segment holds. */
async function fill(sessions: Sessions): Promise<void> {
  await sessions.createSession("s");
  const turn = Array.from({ length: 100 }, (_, i) => says("user", `message ${i}`));
  for (let i = 0; i < 30; i++) await sessions.appendTurn({ sessionId: "s" }, turn);
}

const end = [{ sessionId: "s", branchId: "main" }, 10_000] as const;

test("a default agent keeps its history once, without segments", async () => {
  const agent = createAgent({ model: scriptedModel([]) });
  await fill(agent);
  expect(agent.store.kind).toBe("memory");
  expect(agent.store.segments).toBeUndefined();
  expect((await agent.loadBranch("s")).messages).toHaveLength(3000);
});

test("an agent whose store is opened on first use keeps segments where the store does", async () => {
  const agent = createAgent({ model: scriptedModel([]), store: "sqlite::memory:" });
  await fill(agent);
  expect(agent.store.kind).toBe("sqlite");
  // Nothing waits for a segment to be written.
  const segment = () => agent.store.segments!.get(...end);
  await expect.poll(segment, { timeout: 60_000 }).toMatchObject({ lines: expect.any(Array) });
  await agent.close();
});
