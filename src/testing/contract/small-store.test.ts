// A store that leaves out everything that may be left out keeps the rest of the contract, and what stands on it says what is
// missing.

import { describe, expect, test } from "vitest";
import type { Store } from "../../log/store.ts";
import { openSessions } from "../../sessions/index.ts";
import { memoryStore } from "../../stores/memory/index.ts";
import { describeStore } from "./index.ts";

const small = "it is as small as the port allows";

/** Only what the port requires. */
function smallStore(options: Parameters<typeof memoryStore>[0] = {}): Store {
  const store = memoryStore(options);
  return new Proxy(store, {
    get(target, name) {
      if (name === "segments" || name === "content" || name === "live") return undefined;
      const value = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

describeStore("small", {
  async open(options) {
    const store = smallStore(options);
    return { store, dispose: () => store.close() };
  },
  lacks: { reopen: small, secondHandle: small, segments: small, content: small, live: small },
});

describe("sessions on a small store", () => {
  test("keep turns, forks and checkpoints, and refuse content", async () => {
    const sessions = await openSessions(smallStore());
    await sessions.createSession("s");
    const bytes = new Uint8Array([1]);
    for (const call of [
      () => sessions.putContent("s", { bytes }),
      () => sessions.getContent("s", "0".repeat(64)),
      () => sessions.listContent("s"),
      () => sessions.deleteContent("s", "0".repeat(64)),
    ]) {
      await expect(call()).rejects.toMatchObject({
        code: "store_unsupported",
        message: "This store does not support content.",
      });
    }
    // More than a segment holds, so that one would be cut if the store kept any.
    for (let n = 0; n < 600; n++) {
      await sessions.appendTurn("s", [
        { role: "user", content: "Hi" },
        { role: "assistant", content: `${n}` },
      ]);
    }
    const { id } = await sessions.forkBranch("s", { newBranchId: "fork" });
    const again = await openSessions(sessions.store);
    expect((await again.loadBranch({ sessionId: "s", branchId: id })).messages).toHaveLength(1200);
  });
});
