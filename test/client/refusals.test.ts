// What ends a subscription and what does not, on a running server.

import { describe, expect, onTestFinished, test } from "vitest";
import { createClient, type SubscribeOptions } from "../../src/client/index.ts";
import type { BoughEvent } from "../../src/events/index.ts";
import type { Identity } from "../../src/server/index.ts";
import { given, settled, until } from "../server/kit.ts";
import { badLine, clientOf, quick, transports } from "./kit.ts";

const scope = { agentId: "helper", sessionId: "s" };
const isKept = ({ seq }: BoughEvent) => seq !== undefined;
const ignore: SubscribeOptions = { onEvent: () => {} };

describe.each(transports)("over %s", (transport) => {
  test("a wrong token, a branch and an agent that are not there, and a cursor past the log are the end", async () => {
    const g = await given([]);
    const { url } = g.serving;
    const client = await clientOf(g, { url, transport });
    const ends = (subscription: { ended: Promise<unknown> }) => subscription.ended;
    const wrong = createClient({ url, token: "wrong", transport, ...quick });
    expect(await ends(wrong.branch(scope).subscribe(ignore))).toMatchObject({
      state: "failed",
      error: { code: "unauthorized", status: 401 },
    });
    expect(await ends(client.branch({ ...scope, branchId: "b" }).subscribe(ignore))).toMatchObject({
      state: "failed",
      error: { code: "branch_not_found", status: 404 },
    });
    expect(await ends(client.branch({ ...scope, agentId: "nobody" }).subscribe(ignore))).toMatchObject({
      state: "failed",
      error: { code: "agent_not_found" },
    });
    expect(await ends(client.branch(scope).subscribe({ ...ignore, after: 99 }))).toMatchObject({
      state: "failed",
      error: { code: "position_not_on_branch", status: 410 },
    });
    await expect(client.branch(scope).watch({ after: 99 }).next()).rejects.toMatchObject({
      code: "position_not_on_branch",
    });
  });

  test("a credential that is revoked ends it, and one that was renewed does not", async () => {
    const identity: Identity = { tenant: "t", scopes: ["read", "write", "run", "admin"] };
    const allowed = new Set(["old"]);
    const auth = (request: Request) => {
      const token = request.headers.get("authorization")?.replace("Bearer ", "") ?? "";
      return allowed.has(token) ? identity : undefined;
    };
    const g = await given([], { auth, limits: { heartbeatMs: 20 } });
    const { url } = g.serving;
    let token = "old";
    const client = createClient({ url, token: () => token, transport, ...quick });
    await client.createSession("s");
    const states: string[] = [];
    const subscription = client.branch(scope).subscribe({ ...ignore, onConnection: ({ state }) => states.push(state) });
    await until(() => states.includes("live"));
    allowed.clear();
    allowed.add("new");
    token = "new";
    await until(() => states.filter((state) => state === "live").length === 2);
    allowed.clear();
    expect(await subscription.ended).toMatchObject({ state: "failed", error: { code: "unauthorized" } });
  });

  test("too many streams is for now", async () => {
    const g = await given([], { limits: { streams: 1 } });
    const client = await clientOf(g, { transport });
    const first = client.branch(scope).subscribe(ignore);
    await until(() => first.connection.state === "live");
    const second = client.branch(scope).subscribe(ignore);
    onTestFinished(() => second.close());
    await until(() => second.connection.state === "waiting");
    first.close();
    await until(() => second.connection.state === "live");
  });

  test("a handler that is slower than the run loses nothing", async () => {
    const g = await given(() => "x".repeat(4000), { limits: { bufferBytes: 30_000 } });
    const client = await clientOf(g, { transport });
    const branch = client.branch(scope);
    const seen: BoughEvent[] = [];
    let isFree = false;
    const subscription = branch.subscribe({
      async onEvent(event) {
        await until(() => isFree);
        seen.push(event);
      },
    });
    onTestFinished(() => subscription.close());
    for (let i = 0; i < 10; i++) {
      await branch.submit(`${i}`);
      await settled(g);
    }
    isFree = true;
    await until(() => subscription.cursor === 41);
    expect(seen.filter(isKept)).toMatchObject(await branch.events());
  });
});

test("a picture whose position is gone is loaded again", async () => {
  const g = await given(["One.", "Two."]);
  const { port, url } = g.serving;
  let isUp = true;
  const line = await badLine(
    () => (isUp ? port : 1),
    () => undefined,
  );
  const client = await clientOf(g, { url });
  await client.branch(scope).submit("Hi");
  await settled(g);
  const live = (await clientOf(g, { url: line.url })).branch(scope).live();
  onTestFinished(live.subscribe(() => {}));
  await until(() => live.current.connection.state === "live" && live.current.messages.length === 2);
  isUp = false;
  line.cut();
  await until(() => live.current.connection.state === "waiting");
  await client.deleteSession("s");
  await client.createSession("s");
  isUp = true;
  await until(() => live.current.connection.state === "live");
  expect(live.current).toMatchObject({ messages: [], seq: 1, status: "idle" });
  expect(live.current.error).toBeUndefined();
});

test("an input whose answer is lost is said again and happens once", async () => {
  const g = await given(() => "Yes.");
  const { port } = g.serving;
  let losses = 3;
  const line = await badLine(
    () => port,
    () => (losses-- > 0 ? { bytes: 1, how: "cut" } : undefined),
  );
  const branch = (await clientOf(g, { url: line.url })).branch(scope);
  const { runId, inputId } = await branch.submit("Once");
  await settled(g);
  const { messages } = await branch.state();
  expect(messages.map(({ role, id }) => [role, id === inputId])).toEqual([
    ["user", true],
    ["assistant", false],
  ]);
  expect((await branch.runs()).map((run) => run.runId)).toEqual([runId]);
  expect(line.connections).toBeGreaterThan(3);
});
