import { expect, test, vi } from "vitest";
import { liveEvent } from "../events/index.ts";
import { createContext } from "../sessions/context.ts";
import { Sessions } from "../sessions/index.ts";
import { memoryStore } from "../stores/memory/index.ts";
import { Feed } from "./feed.ts";
import { Feeds } from "./feeds.ts";

const ownedBy = (branchId: string) => ({ owner: { sessionId: "s", branchId, turnId: "t", kind: "subagent" } });

async function givenFeeds(owners: Readonly<Record<string, string>>) {
  const store = memoryStore();
  const context = createContext(store, {});
  const sessions = new Sessions(context);
  await sessions.createSession("s");
  for (const [branchId, owner] of Object.entries(owners)) {
    await sessions.createBranch("s", { branchId, ...ownedBy(owner) });
  }
  const looked = vi.spyOn(store, "getBranch");
  return { feeds: new Feeds(context), looked, sessions };
}

const eventOf = (branchId: string) =>
  liveEvent(
    { type: "text-delta", messageId: "m", text: "hi" },
    { sessionId: "s", branchId, at: 1, agent: { chain: ["a", "b"], depth: 1 } },
  );

async function settle(): Promise<void> {
  for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve));
}

test("events of a subagent reach its ancestors once, also when those name each other as owners", async () => {
  const { feeds, looked } = await givenFeeds({ child: "a", a: "b", b: "a" });
  const told = vi.spyOn(Feed.prototype, "emittedByChild");
  await feeds.open({ sessionId: "s", branchId: "a" }, 0, { bufferBytes: 1e6 });
  looked.mockClear();
  for (let i = 0; i < 3; i++) feeds.emitted(eventOf("child"));
  await settle();
  told.mockClear();
  feeds.emitted(eventOf("child"));
  await settle();
  expect(told).toHaveBeenCalledTimes(1);
  expect(looked.mock.calls.length).toBeLessThanOrEqual(3);
  await feeds.close();
});

test("a branch that names itself as its owner ends the walk", async () => {
  const { feeds } = await givenFeeds({ own: "own" });
  await feeds.open({ sessionId: "s", branchId: "own" }, 0, { bufferBytes: 1e6 });
  for (let i = 0; i < 3; i++) {
    feeds.emitted(eventOf("own"));
    await settle();
  }
  await feeds.close();
});

test("metadata that looks like an owner lets nothing into another branch's stream", async () => {
  const { feeds, sessions } = await givenFeeds({});
  const metadata = { kind: "subagent", parentSessionId: "s", parentBranchId: "main", ...ownedBy("main") };
  await sessions.createBranch("s", { branchId: "liar", metadata });
  const told = vi.spyOn(Feed.prototype, "emittedByChild");
  told.mockClear();
  await feeds.open({ sessionId: "s", branchId: "main" }, 0, { bufferBytes: 1e6 });
  for (let i = 0; i < 2; i++) {
    feeds.emitted(eventOf("liar"));
    await settle();
  }
  expect(told).not.toHaveBeenCalled();
  await feeds.close();
});
