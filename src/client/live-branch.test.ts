import { expect, test } from "vitest";
import type { BoughEvent } from "../events/index.ts";
import type { StateBody } from "../wire/types.ts";
import { RemoteError } from "./errors.ts";
import { LiveBranch, type LiveOptions } from "./live-branch.ts";
import type { SubscribeOptions, Subscription } from "./subscription.ts";
import { ToolRunner } from "./tools.ts";

const branch = { sessionId: "s", id: "main", tags: [], metadata: {}, createdAt: 0, lastActivity: 0, messageCount: 0 };
const activeRun = {
  runId: "r",
  sessionId: "s",
  branchId: "main",
  turnId: "t",
  status: "active",
  startedAt: 0,
} as const;

function stateAt(seq: number, more: Partial<StateBody> = {}): StateBody {
  return {
    seq,
    branch: { ...branch, seq },
    messages: [],
    firstIndex: 0,
    interactions: [],
    queue: [],
    tasks: [],
    activeRun: null,
    ...more,
  };
}

const running = stateAt(3, { openTurn: { id: "t", startedAt: 0, messages: [] }, activeRun });

/** A branch whose server does what the test says. */
function watched(...states: (StateBody | Error)[]) {
  return watchedWith({}, ...states);
}

function watchedWith(options: LiveOptions, ...states: (StateBody | Error)[]) {
  const opened: SubscribeOptions[] = [];
  let closed = 0;
  const source = {
    async state() {
      const state = states.length > 1 ? states.shift()! : states[0]!;
      if (state instanceof Error) throw state;
      return state;
    },
    subscribe(options: SubscribeOptions) {
      opened.push(options);
      return { close: () => closed++ } as unknown as Subscription;
    },
  };
  const live = new LiveBranch(source, options, (onError) => {
    const backoff = { minMs: 1, maxMs: 1 };
    const clock = { now: () => 0, sleep: () => Promise.resolve() };
    return new ToolRunner({ tools: () => ({}), respond: async () => {}, onError, clock, random: () => 0, backoff });
  });
  let shown = 0;
  const leave = live.subscribe(() => shown++);
  const load = () => (opened.at(-1)!.after as () => Promise<number>)();
  const tell = (event: object) => opened.at(-1)!.onEvent({ at: 0, ...event } as unknown as BoughEvent);
  return { live, leave, load, tell, opened, closed: () => closed, shown: () => shown };
}

test("a run that was parked leaves its turn open, and one that takes it up is shown", async () => {
  const { live, load, tell } = watched(running);
  expect(await load()).toBe(3);
  expect(live.current).toMatchObject({ status: "running", run: { runId: "r", turnId: "t" } });
  await tell({ type: "run-end", status: "parked" });
  expect(live.current).toMatchObject({ status: "open", run: null });
  await tell({ type: "turn.resumed", id: "e4", seq: 4, turnId: "t", runId: "r2" });
  expect(live.current).toMatchObject({ status: "running", run: { runId: "r2", turnId: "t" } });
  await tell({ type: "turn.committed", id: "e5", seq: 5, turnId: "t" });
  expect(live.current).toMatchObject({ status: "idle", run: null, lastTurn: { status: "committed" } });
});

test("a kind of fact that nobody here knows moves the position and nothing else", async () => {
  const { live, load, tell } = watched(running);
  await load();
  await tell({ type: "moon.rose", id: "e4", seq: 4 });
  expect(live.current).toMatchObject({ status: "running", seq: 4 });
});

test("a fact about a turn that the picture does not have is looked up", async () => {
  const said = { id: "m", role: "user", content: "Hi", createdAt: 0, turnId: "old" } as const;
  const { live, load, tell } = watched(stateAt(3), stateAt(6, { messages: [said] }));
  await load();
  await tell({ type: "turn.committed", id: "e4", seq: 4, turnId: "old" });
  expect(live.current).toMatchObject({ seq: 6, messages: [said] });
  // What the state showed already is not told twice.
  await tell({ type: "message.added", id: "m", seq: 5, turnId: "old", role: "user", content: "Hi" });
  expect(live.current.messages).toHaveLength(1);
});

test("when the state can't be had now, the event comes again; when it is refused, that is the end", async () => {
  const { load, tell } = watched(stateAt(3), new RemoteError("unreachable", "No line."));
  await load();
  await expect(tell({ type: "branch.reverted", id: "e4", seq: 4, to: 1, messages: 0 })).rejects.toThrow("No line.");
  const gone = watched(stateAt(3), new RemoteError("branch_not_found", "Gone.", { status: 404 }));
  await gone.load();
  await gone.tell({ type: "branch.reverted", id: "e4", seq: 4, to: 1, messages: 0 });
  expect([gone.live.current.error, gone.closed()]).toMatchObject([{ code: "branch_not_found" }, 1]);
});

test("LiveBranch-4: an event that comes again is told once, and one that the picture began with not at all", async () => {
  const told: unknown[] = [];
  const onEvent = (event: BoughEvent) => void told.push(event.seq ?? event.type);
  const lost = new RemoteError("unreachable", "No line.");
  const { load, tell, live } = watchedWith({ onEvent }, stateAt(3), lost, stateAt(5));
  await load();
  const reverted = { type: "branch.reverted", id: "e4", seq: 4, to: 1, messages: 0 };
  await expect(tell(reverted)).rejects.toThrow("No line.");
  await tell(reverted);
  expect(live.current.seq).toBe(5);
  await tell({ type: "custom-emit", name: "x", data: 1 });
  // The picture was loaded with it, but the listener has not heard of it.
  await tell({ type: "moon.rose", id: "e5", seq: 5 });
  expect(told).toEqual([4, "custom-emit", 5]);
});

test("LiveBranch-4: what onEvent throws is shown, and the picture goes on", async () => {
  const onEvent = () => {
    throw new Error("Not my day.");
  };
  const { load, tell, live } = watchedWith({ onEvent }, running);
  await load();
  await tell({ type: "message.added", id: "m", seq: 4, turnId: "t", role: "user", content: "Hi" });
  expect(live.current).toMatchObject({ seq: 4, error: { message: "Not my day." }, messages: [{ content: "Hi" }] });
});

test("LiveBranch-2: a picture that was shown stays as it was", async () => {
  const { live, load, tell } = watched(running);
  await load();
  const before = live.current;
  const copy = structuredClone(before);
  await tell({ type: "message.added", id: "m", seq: 4, turnId: "t", role: "user", content: "Hi" });
  await tell({ type: "text-delta", messageId: "n", text: "x" });
  await tell({ type: "interaction.opened", id: "i", seq: 5, turnId: "t", kind: "permission", request: {} });
  expect(before).toEqual(copy);
  expect(live.current).toMatchObject({ status: "asking", seq: 5, streaming: [{ text: "x" }] });
});

test("LiveBranch-3: one connection for all who listen, kept for whoever comes back at once, dropped after the last", async () => {
  const { live, leave, opened, closed } = watched(running);
  const leaveToo = live.subscribe(() => {});
  leave();
  leaveToo();
  const back = live.subscribe(() => {});
  await Promise.resolve();
  expect([opened.length, closed()]).toEqual([1, 0]);
  back();
  await Promise.resolve();
  expect([opened.length, closed()]).toEqual([1, 1]);
  live.subscribe(() => {});
  expect(opened.length).toBe(2);
});

test("events that change nothing on the screen call nobody", async () => {
  const { load, tell, shown } = watched(running);
  await load();
  const before = shown();
  await tell({ type: "iteration-start", iteration: 1 });
  await tell({ type: "tool-start", callId: "c", messageId: "m", toolName: "t" });
  expect(shown()).toBe(before);
});
