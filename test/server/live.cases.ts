// Live streams on one store: section 6 of PROTOCOL.md, and D1 to D4 of what streams promise.

import { expect, test } from "vitest";
import type { BoughEvent } from "../../src/events/index.ts";
import type { Frame } from "../../src/wire/index.ts";
import { SseReader } from "../../src/wire/index.ts";
import { expectProblem, gate, given, isEvent, type LiveStream, type OpenStore, scope, settled, until } from "./kit.ts";

const main = "/sessions/s/branches/main";
const keptOf = (frames: readonly Frame[]): BoughEvent[] =>
  frames.flatMap((frame) => (frame.type === "event" && frame.event.seq !== undefined ? [frame.event] : []));

/** A model whose answers come word by word, as somebody lets them. */
function wordByWord(words: readonly string[]) {
  const passages = words.map(() => gate());
  let call = 0;
  const model = {
    specificationVersion: "v3" as const,
    provider: "test",
    modelId: "words",
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error("only streams")),
    async doStream() {
      const isFirst = call++ === 0;
      const stream = new ReadableStream({
        async start(controller) {
          controller.enqueue({ type: "stream-start", warnings: [] });
          controller.enqueue({ type: "text-start", id: "t" });
          for (const [i, word] of words.entries()) {
            if (isFirst) await passages[i]!.passed;
            controller.enqueue({ type: "text-delta", id: "t", delta: word });
          }
          controller.enqueue({ type: "text-end", id: "t" });
          controller.enqueue({
            type: "finish",
            finishReason: { unified: "stop", raw: "stop" },
            usage: { inputTokens: { total: 1 }, outputTokens: { total: 1 } },
          });
          controller.close();
        },
      });
      return { stream };
    },
  };
  return { model: model as never, say: (i: number) => passages[i]!.open() };
}

/** The message as a reader has it: snapshots replace, deltas add. */
function textSeen(stream: LiveStream): string {
  let text = "";
  for (const frame of stream.frames) {
    if (frame.type === "snapshot") text = frame.message.text;
    if (frame.type === "event" && frame.event.type === "text-delta") text += frame.event.text;
  }
  return text;
}

export function describeLive(open: OpenStore): void {
  const start: typeof given = (script, options = {}) => given(script, { open, ...options });

  test("6.1 state shows one moment: its cursor, its turn and the run that works on it", async () => {
    const words = wordByWord(["a", "b"]);
    const g = await start([], { agent: { model: words.model } });
    const { runId } = (await g.ask("POST", `${scope}/inputs`, { input: "Hi" })).body;
    const during = (await g.ask("GET", `${scope}/state`)).body;
    expect(during).toMatchObject({
      seq: 3,
      messages: [],
      openTurn: { messages: [{ role: "user" }] },
      activeRun: { runId },
    });
    words.say(0);
    words.say(1);
    await settled(g);
    const after = (await g.ask("GET", `${scope}/state?last=1`)).body;
    expect(after).toMatchObject({ seq: 5, messages: [{ role: "assistant" }], activeRun: null });
    expect(after.openTurn).toBeUndefined();
  });

  test("6.1 whenever state is read while runs come and go, turn and run agree", async () => {
    const g = await start(() => "Quick.");
    let isOver = false;
    const reading = (async () => {
      while (!isOver) {
        const { body } = await g.ask("GET", `${scope}/state`);
        if (body.activeRun) expect(body.activeRun.turnId).toBe(body.openTurn?.id);
        else expect(body.openTurn).toBeUndefined();
      }
    })();
    for (let i = 0; i < 20; i++) {
      expect((await g.ask("POST", `${scope}/inputs`, { input: `${i}` })).status).toBe(202);
      await settled(g);
    }
    isOver = true;
    await reading;
  });

  test("6.2–6.4, 6.7 kept events come in order with their ids, deltas before their message", async () => {
    const g = await start(() => "Hello there, my dear friend.");
    const live = await g.live(`${scope}/events/live`);
    await live.until(({ type }) => type === "ready");
    // Deltas are best effort: on a busy machine, those of one turn may all be missed.
    for (let turn = 1; turn <= 5 && !live.types.includes("text-delta"); turn++) {
      await g.ask("POST", `${scope}/inputs`, { input: "Hi" });
      await live.until(() => live.types.filter((type) => type === "run-end").length === turn);
    }
    const { events } = (await g.ask("GET", `${main}/events`)).body;
    expect(keptOf(live.frames)).toMatchObject(events);
    for (const frame of live.frames) {
      const seq = frame.type === "event" ? frame.event.seq : undefined;
      expect(frame.id).toBe(seq === undefined ? undefined : String(seq));
    }
    expect(live.types.indexOf("text-delta")).toBeGreaterThan(live.types.lastIndexOf("turn.started"));
    expect(live.types.lastIndexOf("text-delta")).toBeLessThan(live.types.lastIndexOf("message.added"));
    expect(textSeen(live)).toBe("Hello there, my dear friend.");
  });

  test("6.2 Last-Event-ID is a cursor, and `after` goes before it", async () => {
    const g = await start(["One."]);
    await g.ask("POST", `${scope}/inputs`, { input: "Hi" });
    await settled(g);
    const read = async (path: string, headers: Record<string, string>) => {
      const live = await g.live(path, headers);
      await live.until(({ type }) => type === "ready");
      return keptOf(live.frames).map(({ seq }) => seq);
    };
    expect(await read(`${scope}/events/live`, { "last-event-id": "3" })).toEqual([4, 5]);
    expect(await read(`${scope}/events/live?after=4`, { "last-event-id": "1" })).toEqual([5]);
    expect(await read(`${scope}/events/live?after=5`, {})).toEqual([]);
    expectProblem(
      await g.ask("GET", `${scope}/events/live`, undefined, { "last-event-id": "x" }),
      400,
      "invalid_argument",
    );
  });

  test("6.6 whoever joins in the middle of a message sees all of it once", async () => {
    const words = wordByWord(["one ", "two ", "three ", "four"]);
    const g = await start([], { agent: { model: words.model } });
    const early = await g.live(`${scope}/events/live`);
    await early.until(({ type }) => type === "ready");
    await g.ask("POST", `${scope}/inputs`, { input: "Count" });
    words.say(0);
    words.say(1);
    await early.until(() => textSeen(early) === "one two ");
    const late = await g.live(`${scope}/events/live?after=3`);
    await late.until(({ type }) => type === "ready");
    expect(textSeen(late)).toBe("one two ");
    words.say(2);
    words.say(3);
    await Promise.all([early, late].map((stream) => stream.until(isEvent("run-end"))));
    expect(textSeen(early)).toBe("one two three four");
    expect(textSeen(late)).toBe("one two three four");
    expect(late.frames.filter(({ type }) => type === "snapshot")).toHaveLength(1);
  });

  test("6.5 facts that no run of this process writes come too", async () => {
    const g = await start([]);
    const live = await g.live(`${scope}/events/live`);
    await live.until(({ type }) => type === "ready");
    await g.ask("PATCH", main, { name: "New" });
    expect(await live.until(isEvent("branch.updated"))).toMatchObject({ id: "2" });
  });

  test("6.8 a quiet stream shows signs of life", async () => {
    const g = await start([], { limits: { heartbeatMs: 20 } });
    const live = await g.live(`${scope}/events/live`);
    while (!live.text.includes(": \n\n")) await live.readMore();
  });

  test("6.9 a cursor past the log is refused, and a deleted branch resets its streams", async () => {
    const g = await start([]);
    const problem = expectProblem(await g.ask("GET", `${scope}/events/live?after=99`), 410, "position_not_on_branch");
    expect(problem.data).toMatchObject({ seq: 99, newest: 1 });
    await g.ask("POST", `${scope}/fork`, { newBranchId: "f" });
    const live = await g.live("/agents/helper/sessions/s/branches/f/events/live");
    await live.until(({ type }) => type === "ready");
    await g.ask("DELETE", "/sessions/s/branches/f");
    expect(await live.until(({ type }) => type === "reset")).toMatchObject({ problem: { code: "branch_not_found" } });
    await live.toEnd();
  });

  test("6.10 a slow reader is dropped with its cursor; others and the run don't notice", async () => {
    const g = await start(() => "x".repeat(4000), { limits: { bufferBytes: 20_000 } });
    const slow = await g.liveHere(`${scope}/events/live`);
    const fast = await g.live(`${scope}/events/live`);
    await Promise.all([slow, fast].map((stream) => stream.until(({ type }) => type === "ready")));
    const reading = fast.until((frame) => frame.type === "event" && (frame.event.seq ?? 0) >= 41);
    for (let i = 0; i < 10; i++) {
      expect((await g.ask("POST", `${scope}/inputs`, { input: `${i}` })).status).toBe(202);
      await settled(g);
    }
    await reading;
    await slow.toEnd();
    const end = slow.frames.at(-1)!;
    expect(end).toMatchObject({ type: "end", reason: "slow" });
    const { after } = end as Extract<Frame, { type: "end" }>;
    expect(keptOf(slow.frames).at(-1)?.seq ?? 0).toBe(after);
    const again = await g.live(`${scope}/events/live?after=${after}`);
    await again.until(({ type }) => type === "ready");
    const { events } = (await g.ask("GET", `${main}/events`)).body;
    expect([...keptOf(slow.frames), ...keptOf(again.frames)]).toMatchObject(events);
    expect(keptOf(fast.frames)).toMatchObject(events);
  });

  test("6.11 a server that stops ends its streams with a cursor", async () => {
    const g = await start(["One."]);
    await g.ask("POST", `${scope}/inputs`, { input: "Hi" });
    await settled(g);
    const live = await g.live(`${scope}/events/live`);
    await live.until(({ type }) => type === "ready");
    const closing = g.server.close();
    await live.toEnd();
    await closing;
    expect(live.frames.at(-1)).toEqual({ type: "end", reason: "closing", after: 5 });
  });

  test("D1: streams cut at any byte, over and over, add up to the log, each event once", async () => {
    // A stream that is cut must give its place back: there are more cuts than places.
    const g = await start((_prompt, call) => `Answer ${call}: ${"word ".repeat(20)}`, { limits: { streams: 8 } });
    const { url } = g.serving;
    const turns = 12;
    const headers = { authorization: `Bearer ${g.server.token}` };
    const seen: BoughEvent[] = [];
    const texts = new Map<string, string>();
    let random = 7;
    const next = () => {
      random = (random * 1103515245 + 12345) % 2147483648;
      return random / 2147483648;
    };
    const reading = (async () => {
      let last = "0";
      while (seen.length < 1 + turns * 4) {
        const response = await fetch(`${url}${scope}/events/live`, { headers: { ...headers, "last-event-id": last } });
        expect(response.status).toBe(200);
        const reader = response.body!.getReader();
        const sse = new SseReader();
        const decoder = new TextDecoder();
        let left = Math.floor(next() * 4000);
        while (left > 0 && seen.length < 1 + turns * 4) {
          const { done, value } = await reader.read();
          if (done) break;
          // What comes after the cut is lost, also in the middle of a frame.
          const piece = value.subarray(0, left);
          left -= piece.length;
          for (const { id, data } of sse.read(decoder.decode(piece, { stream: true }))) {
            const frame = JSON.parse(data) as Frame;
            if (id !== undefined) last = id;
            if (frame.type === "snapshot") texts.set(frame.message.messageId, frame.message.text);
            if (frame.type !== "event") continue;
            const { event } = frame;
            if (event.seq !== undefined) seen.push(event);
            if (event.type === "text-delta")
              texts.set(event.messageId, (texts.get(event.messageId) ?? "") + event.text);
          }
        }
        await reader.cancel();
      }
    })();
    for (let i = 0; i < turns; i++) {
      expect((await g.ask("POST", `${scope}/inputs`, { input: `${i}` })).status).toBe(202);
      await settled(g);
    }
    await reading;
    const { events } = (await g.ask("GET", `${main}/events`)).body;
    expect(seen).toMatchObject(events);
  });

  test("a stream that is left gives its place back", async () => {
    const g = await start([], { limits: { streams: 2 } });
    const first = await g.live(`${scope}/events/live`);
    await g.live(`${scope}/events/live`);
    expectProblem(await g.ask("GET", `${scope}/events/live`), 429, "rate_limited");
    await first.leave();
    await until(async () => (await g.server.fetch(streamRequest(g.server.token!))).status === 200);
  });
}

function streamRequest(token: string): Request {
  return new Request(`http://localhost${scope}/events/live`, { headers: { authorization: `Bearer ${token}` } });
}
