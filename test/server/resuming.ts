// D1, D2: streams cut at random bytes, a server killed with -9 and started again in the middle. A reader's cursor is all that
// survives, and what it got adds up to the log, each event once. BOUGH_SEED replays a run.

import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { WebSocket } from "ws";
import type { BoughEvent } from "../../src/events/index.ts";
import { type Frame, SseReader } from "../../src/wire/index.ts";
import { cuttingProxy } from "./cutting-proxy.ts";
import { scope, until } from "./kit.ts";
import { logOf, Node, type Place, token } from "./process.ts";

const main = "/sessions/s/branches/main";
const turns = 12;
const kills = 4;
const seed = Number(process.env.BOUGH_SEED ?? Date.now() % 1_000_000);

function randomFrom(start: number): () => number {
  let state = start;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** What one reader has seen, over as many connections as it took. */
class Seen {
  readonly events: BoughEvent[] = [];
  connections = 0;
  /** Messages that were shown in another form than they were kept. */
  readonly wrong: string[] = [];
  /** What this connection showed of messages in the making. */
  #drafts = new Map<string, string>();

  get cursor(): number {
    return this.events.at(-1)?.seq ?? 0;
  }

  begin(): void {
    this.connections++;
    this.#drafts = new Map();
  }

  take(frame: Frame): void {
    if (frame.type === "snapshot") this.#drafts.set(frame.message.messageId, frame.message.text);
    if (frame.type !== "event") return;
    const { event } = frame;
    if (event.type === "text-delta") {
      this.#drafts.set(event.messageId, (this.#drafts.get(event.messageId) ?? "") + event.text);
    }
    if (event.seq === undefined) return;
    this.events.push(event);
    const draft = this.#drafts.get(event.id);
    if (event.type !== "message.added" || draft === undefined) return;
    const { content } = event;
    const text =
      typeof content === "string" ? content : content.map((part) => ("text" in part ? part.text : "")).join("");
    if (draft !== text) this.wrong.push(`${draft} is not ${text}`);
  }
}

type Connect = (url: string, seen: Seen) => Promise<void>;

/** Server-sent events as they come over a connection, until it breaks. */
async function readSse(address: string, headers: Record<string, string>, seen: Seen): Promise<void> {
  const response = await fetch(address, { headers: { authorization: `Bearer ${token}`, ...headers } }).catch(() => {});
  if (response?.status !== 200) return;
  seen.begin();
  const sse = new SseReader();
  const decoder = new TextDecoder();
  const reader = response.body!.getReader();
  for (;;) {
    const piece = await reader.read().catch(() => undefined);
    if (!piece || piece.done) return;
    for (const { id, data } of sse.read(decoder.decode(piece.value, { stream: true }))) {
      const frame = JSON.parse(data) as Frame;
      const kept = frame.type === "event" ? frame.event.seq : undefined;
      if (id !== (kept === undefined ? undefined : String(kept))) seen.wrong.push(`id ${id} of ${data}`);
      seen.take(frame);
    }
  }
}

const live = `${scope}/events/live`;
const readers: Record<string, Connect> = {
  "Last-Event-ID": (url, seen) => readSse(`${url}${live}`, { "last-event-id": String(seen.cursor) }, seen),
  after: (url, seen) => readSse(`${url}${live}?after=${seen.cursor}`, { "last-event-id": "0" }, seen),
  WebSocket: (url, seen) =>
    new Promise((resolve) => {
      const address = `${url.replace("http", "ws")}${scope}/ws?after=${seen.cursor}`;
      const ws = new WebSocket(address, ["bough", `bough-token.${token}`]);
      ws.on("open", () => seen.begin());
      ws.on("message", (data) => seen.take(JSON.parse(String(data))));
      ws.on("error", () => {});
      ws.on("close", () => resolve());
    }),
};

async function campaign(place: Place): Promise<void> {
  const random = randomFrom(seed);
  let node = await Node.start("one", place, { limits: { streams: 16 } });
  const proxy = await cuttingProxy(() => 200 + Math.floor(random() ** 2 * 12_000));
  proxy.point(node.port);
  expect((await node.ask("POST", "/sessions", { sessionId: "s" })).status).toBe(201);
  let isOver = false;
  const all = Object.entries(readers).map(([name, connect]) => {
    const seen = new Seen();
    const reading = (async () => {
      while (!isOver) {
        await connect(`http://127.0.0.1:${proxy.port}`, seen);
        await sleep(1);
      }
    })();
    return { name, seen, reading };
  });
  const closed = (events: readonly BoughEvent[]) =>
    events.filter(({ type }) => type === "turn.committed" || type === "turn.ended").length;

  /** An answer may be lost: the key makes asking again harmless. */
  const submit = async (turn: number) =>
    until(async () => {
      const headers = { "idempotency-key": `turn ${turn}` };
      const answer = await node.ask("POST", `${scope}/inputs`, { input: `${turn}` }, headers).catch(() => undefined);
      return answer?.status === 202;
    });
  for (let turn = 0; turn < turns; turn++) {
    await submit(turn);
    if (turn % Math.floor(turns / kills) === 1) {
      await sleep(random() * 90);
      await node.end("SIGKILL");
      node = await Node.start("one", place, { limits: { streams: 16 } });
      proxy.point(node.port);
      await submit(turn);
    }
    await until(async () => closed(await logOf(node, main)) === turn + 1);
  }
  proxy.heal();
  await until(() => all.every(({ seen }) => closed(seen.events) === turns));
  isOver = true;
  const log = await logOf(node, main);
  for (const { name, seen } of all) {
    expect(seen.events, `${name}, seed ${seed}`).toMatchObject(log);
    expect(seen.wrong, `${name}, seed ${seed}`).toEqual([]);
    expect(seen.connections, `${name}, seed ${seed}`).toBeGreaterThan(kills);
  }
  expect(proxy.cuts).toBeGreaterThan(10);
  expect(log.filter(({ type }) => type === "turn.started")).toHaveLength(turns);
  await node.end("SIGKILL");
  await Promise.all(all.map(({ reading }) => reading));
}

export function describeResuming(openPlace: () => Place): void {
  test(`5.12, 6.2, 7.1 streams that are cut add up to the log, also of a server that is killed (seed ${seed})`, () =>
    campaign(openPlace()));
}
