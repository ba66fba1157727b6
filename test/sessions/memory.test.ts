import { expect, test } from "vitest";
import type { Store } from "../../src/log/index.ts";
import { openSessions } from "../../src/sessions/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { says } from "./kit.ts";
import { describeSessions } from "./suite.ts";

describeSessions({
  kind: "memory",
  async open({ clock }) {
    // With segments, which it has no use for: what sessions do with them is the same on every store that has.
    const store: Store = Object.assign(memoryStore({ clock }), { wantsSegments: true });
    return { store, second: async () => store, dispose: () => store.close() };
  },
});

test.each([false, true])("segments are made for a store that wants them: %s", async (wantsSegments) => {
  let saved = 0;
  const saveSegment = async () => void saved++;
  const store: Store = Object.assign(memoryStore(), { saveSegment, ...(wantsSegments && { wantsSegments }) });
  const sessions = await openSessions(store);
  await sessions.createSession("s");
  const turn = Array.from({ length: 100 }, (_, i) => says("user", `message ${i}`));
  for (let i = 0; i < 30; i++) await sessions.appendTurn({ sessionId: "s" }, turn);
  await sessions.close();
  expect(saved > 0).toBe(wantsSegments);
});
