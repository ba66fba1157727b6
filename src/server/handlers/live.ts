import { BoughError } from "../../base/errors.ts";
import { sseHeartbeat, sseText } from "../../wire/index.ts";
import type { Exchange, Held } from "../exchange.ts";
import type { Encoded, Reader } from "../reader.ts";
import { Refusal } from "../refusal.ts";

export const liveHandlers = {
  async liveEvents(exchange: Exchange): Promise<Response> {
    await exchange.agent();
    const after = cursorOf(exchange);
    const held = exchange.hold();
    try {
      return new Response(await sseStream(exchange, held, after), {
        headers: { "content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no" },
      });
    } catch (error) {
      held.done();
      throw error;
    }
  },
  /** Reached only without an upgrade: the socket itself is taken over before this. */
  async socket(exchange: Exchange): Promise<never> {
    await exchange.agent();
    await exchange.tenant.sessions.getBranch(exchange.ref.sessionId, exchange.ref.branchId);
    throw new Refusal("invalid_argument", "This route is a WebSocket.");
  },
};

/** `after` goes before `Last-Event-ID`; without either, everything. */
export function cursorOf({ query, request }: Exchange): number {
  const { after } = query as { after?: number };
  if (after !== undefined) return after;
  const last = request.headers.get("last-event-id");
  if (last === null || last === "") return 0;
  if (!/^\d{1,15}$/.test(last)) throw new BoughError("invalid_argument", "Last-Event-ID is not a cursor.");
  return Number(last);
}

const encoder = new TextEncoder();
const encodedSse = new WeakMap<Encoded, Uint8Array>();
const heartbeat = encoder.encode(sseHeartbeat);

/** Encoded once, however many read it. */
function sseBytes(encoded: Encoded): Uint8Array {
  const known = encodedSse.get(encoded);
  if (known) return known;
  const bytes = encoder.encode(sseText(encoded.json, encoded.seq));
  encodedSse.set(encoded, bytes);
  return bytes;
}

/** Many small writes to a connection cost far more than one copy. */
function joined(chunks: readonly Uint8Array[]): Uint8Array {
  if (chunks.length === 1) return chunks[0]!;
  const all = new Uint8Array(chunks.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.length;
  }
  return all;
}

/** How many heartbeats a reader may leave lying what is there for it. */
const patience = 4;

async function sseStream({ tenant, ref, limits, request }: Exchange, held: Held, after: number) {
  const left = new AbortController();
  const { signal } = left;
  let reader: Reader | undefined;
  const onAttached = (attached: Reader) => {
    reader = attached;
  };
  let isAllowed = true;
  const reading = { bufferBytes: limits.bufferBytes, signal, isRevoked: () => !isAllowed, onAttached };
  const frames = await tenant.feeds.open(ref, after, reading);
  let isIdle = true;
  let untaken = 0;
  let timer: ReturnType<typeof setInterval> | undefined;
  const leave = () => {
    clearInterval(timer);
    request.signal.removeEventListener("abort", leave);
    left.abort();
    held.done();
    void frames.return?.();
  };
  const look = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
    const isWaiting = (controller.desiredSize ?? 0) <= 0;
    untaken = isWaiting ? untaken + 1 : 0;
    if (untaken > (reader?.isEnded ? 1 : patience)) {
      // Nothing is to be expected of it, not even that it hears of its end.
      leave();
      return held.drop ? held.drop() : controller.error(new Error("The reader takes nothing."));
    }
    isAllowed = (await held.identity()) !== undefined;
    if (!isAllowed) reader?.end("unauthorized");
    // Whoever has not taken what is there already needs no sign of life.
    else if (isIdle && !isWaiting && !signal.aborted) controller.enqueue(heartbeat);
    isIdle = true;
  };
  return new ReadableStream<Uint8Array>({
    start(controller) {
      timer = setInterval(() => void look(controller), limits.heartbeatMs);
      timer.unref?.();
      // A client that left before the answer began never reads from this, nor cancels it.
      request.signal.addEventListener("abort", leave);
      if (request.signal.aborted) leave();
    },
    async pull(controller) {
      untaken = 0;
      const batch = await frames.next();
      if (batch.done) {
        leave();
        return controller.close();
      }
      isIdle = false;
      controller.enqueue(joined(batch.value.map(sseBytes)));
    },
    cancel: leave,
  });
}
