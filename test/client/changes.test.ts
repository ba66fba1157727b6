// A subscription to changes over lines that break: whoever shows lists by it shows what is true in the end.

import { expect, test } from "vitest";
import type { Change } from "../../src/client/index.ts";
import { given, until } from "../server/kit.ts";
import { badLine, clientOf, seeded } from "./kit.ts";

test("tells what changes, in all sessions and in one, until it is closed", async () => {
  const g = await given(["Hello."]);
  const client = await clientOf(g);
  const told: Change[] = [];
  let isReady = false;
  const all = client.changes({
    onChange: (change) => void told.push(change),
    onReady: () => {
      isReady = true;
    },
  });
  await until(() => isReady);
  const ofT: Change[] = [];
  await client.createSession("t");
  const one = client.changes({ sessionId: "t", onChange: (change) => void ofT.push(change) });
  await until(() => one.connection.state === "live");
  await client.updateSession("t", { metadata: { title: "T" } });
  await client.createSession("u");
  await client.deleteSession("t");
  expect((await one.ended).state).toBe("closed");
  expect(ofT.map(({ type }) => type)).toEqual(["session-change", "session-delete"]);
  await until(() => told.length >= 4);
  expect(told.slice(0, 4).map(({ sessionId }) => sessionId)).toEqual(["t", "t", "u", "t"]);
  all.close();
  expect((await all.ended).state).toBe("closed");
  expect(all.cursor).toMatch(/\.\d+$/);
});

test("a list that follows changes is right in the end, however often the line is cut", async () => {
  const random = seeded("changes");
  const g = await given([]);
  let cuts = 0;
  const fate = () => (cuts++ < 8 ? ({ bytes: 300 + Math.floor(random() * 900), how: "cut" } as const) : undefined);
  const line = await badLine(() => Number(new URL(g.serving.url).port), fate);
  const far = await clientOf(g, { url: line.url });
  const near = await clientOf(g);
  let shown: readonly string[] = [];
  const read = async () => {
    shown = (await near.listSessions({ limit: 1000 })).sessions.map(({ id }) => id).sort();
  };
  let stale = 0;
  const following = far.changes({
    onChange: read,
    onReady: read,
    onStale: () => {
      stale++;
      return read();
    },
  });
  await until(() => shown.length > 0);
  for (let i = 0; i < 40; i++) {
    await near.createSession(`s${i}`);
    if (i % 3 === 0) await near.deleteSession(`s${i}`);
  }
  const wanted = (await near.listSessions({ limit: 1000 })).sessions.map(({ id }) => id).sort();
  await until(() => shown.join() === wanted.join());
  // The server remembers what was missed, so nothing is stale.
  expect(stale).toBe(0);
  expect(line.connections).toBeGreaterThan(1);
  following.close();
});

test("ends for good when it is refused, or when a handler fails", async () => {
  const g = await given([]);
  const refused = (await clientOf(g, { token: "wrong-wrong-wrong-wrong" })).changes({ onChange: () => {} });
  expect(await refused.ended).toMatchObject({ state: "failed", error: { code: "unauthorized" } });
  const client = await clientOf(g);
  const failing = client.changes({
    onChange: () => {
      throw new Error("Not like this.");
    },
  });
  await until(() => failing.connection.state === "live");
  await client.createSession("t");
  expect(await failing.ended).toMatchObject({ state: "failed", error: { message: "Not like this." } });
});
