// How much may be stored: of one file, in a session, in all sessions, and by a tenant of a server. Bytes that are too many are
// refused while they arrive.

import { describe, expect, test } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { openSessions } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { manualClock } from "../../src/testing/index.ts";
import { given as givenServer } from "../server/kit.ts";

const bytes = (size: number, seed = 1) => Uint8Array.from({ length: size }, (_, i) => (i * seed + (i >> 8)) & 255);
const tooLarge = { code: "content_too_large" };

describe("all sessions of a store", () => {
  test("have so many bytes together, in files of any size and form", async () => {
    const sessions = await openSessions(memoryStore(), { contentLimits: { totalBytes: 1000 } });
    for (const id of ["a", "b"]) await sessions.createSession(id);
    await sessions.putContent("a", { bytes: bytes(600) });
    let pulled = 0;
    const stream = (async function* () {
      for (; pulled < 100; pulled++) yield bytes(100, pulled + 2);
    })();
    await expect(sessions.putContent("b", { stream })).rejects.toMatchObject({
      ...tooLarge,
      message: "What is left for all sessions takes at most 400 bytes.",
    });
    expect(pulled).toBeLessThan(6);
    expect(await sessions.listContent("b")).toEqual([]);
    const { id } = await sessions.putContent("b", { bytes: bytes(400, 3) });
    await expect(sessions.putContent("a", { bytes: bytes(1, 5) })).rejects.toMatchObject(tooLarge);
    await sessions.deleteContent("b", id);
    await sessions.putContent("a", { bytes: bytes(400, 7) });
  });

  test("are measured again after a while: other processes store and delete", async () => {
    const clock = manualClock();
    const store = memoryStore({ clock });
    const [one, other] = [
      await openSessions(store, { clock, contentLimits: { totalBytes: 1000 } }),
      await openSessions(store, { clock }),
    ];
    await one.createSession("s");
    await one.putContent("s", { bytes: bytes(100) });
    const { id } = await other.putContent("s", { bytes: bytes(900, 3) });
    clock.advance(60_001);
    await expect(one.putContent("s", { bytes: bytes(100, 5) })).rejects.toMatchObject(tooLarge);
    await other.deleteContent("s", id);
    clock.advance(60_001);
    await one.putContent("s", { bytes: bytes(100, 5) });
  });

  test.each([[{ totalByte: 1 }], [{ totalBytes: -1 }], [{ fileBytes: "1" }]])(
    "limits %j are refused",
    async (limits) => {
      await expect(openSessions(memoryStore(), { contentLimits: limits as never })).rejects.toMatchObject({
        code: "invalid_argument",
      });
    },
  );
});

test("a tenant of a server has its own; another's uploads don't count", async () => {
  const auth = (request: Request) => ({
    tenant: request.headers.get("authorization")!.slice(7),
    scopes: ["read", "write", "run"] as const,
  });
  const limits = { tenantContentBytes: 1000, sessionContentBytes: 700 };
  const g = await givenServer([], { auth, limits });
  const contentOf = async (tenant: string, session: string) => {
    const client = createClient({ url: g.serving.url, token: tenant, agentId: "helper" });
    await client.createSession(session);
    return client.branch({ sessionId: session, branchId: "main" }).content;
  };
  const ada = await contentOf("ada", "s");
  await ada.put(bytes(600));
  await expect(ada.put(bytes(200, 3))).rejects.toMatchObject({ code: "content_too_large" });
  const second = await contentOf("ada", "t");
  await expect(second.put(bytes(500, 5))).rejects.toMatchObject({ code: "content_too_large" });
  await second.put(bytes(400, 7));
  const bob = await contentOf("bob", "s");
  await bob.put(bytes(700, 9));
  expect(await second.list()).toHaveLength(1);
});
