import { BoughError } from "../../base/errors.ts";
import { needBranch } from "../../sessions/branch-record.ts";
import type { Exchange } from "../exchange.ts";
import { Refusal } from "../refusal.ts";
import { SseStream, sseResponse } from "../sse-stream.ts";

export const liveHandlers = {
  async liveEvents(exchange: Exchange): Promise<Response> {
    await exchange.agent();
    const after = cursorOf(exchange);
    const { tenant, ref, limits, request, writesStreams } = exchange;
    const held = exchange.hold();
    try {
      const reader = await tenant.feeds.open(ref, after, { ...limits, events: eventsOf(exchange) });
      const stream = new SseStream({ reader, held, heart: tenant.heart });
      return sseResponse(stream, writesStreams ? undefined : request.signal);
    } catch (error) {
      held.done();
      throw error;
    }
  },
  tenantChanges: (exchange: Exchange) => followChanges(exchange, undefined),
  sessionChanges: (exchange: Exchange) => followChanges(exchange, exchange.sessionId),
  /** Called only without an upgrade: sockets are handled earlier. */
  async socket(exchange: Exchange): Promise<never> {
    await exchange.agent();
    await needBranch(exchange.tenant.context.store, exchange.ref);
    throw new Refusal("invalid_argument", "This route needs a WebSocket upgrade.");
  },
};

/** Whether a reader wants the events of children, too. */
export function eventsOf({ query }: Exchange): "own" | "tree" {
  return (query as { events?: "own" | "tree" }).events ?? "tree";
}

/** `after` takes precedence over `Last-Event-ID`; without either, everything is sent. */
export function cursorOf({ query, request }: Exchange): number {
  const { after } = query as { after?: number };
  if (after !== undefined) return after;
  const last = request.headers.get("last-event-id");
  if (last === null || last === "") return 0;
  if (!/^\d{1,15}$/.test(last)) throw new BoughError("invalid_argument", "Last-Event-ID must be a cursor.");
  return Number(last);
}

async function followChanges(exchange: Exchange, sessionId: string | undefined): Promise<Response> {
  const { tenant, request, query, writesStreams } = exchange;
  const { after = request.headers.get("last-event-id") || undefined } = query as { after?: string };
  const held = exchange.hold();
  try {
    const from = { ...(sessionId !== undefined && { sessionId }), ...(after !== undefined && { after }) };
    const reader = await tenant.changes.open(from);
    const stream = new SseStream({ reader, held, heart: tenant.heart });
    return sseResponse(stream, writesStreams ? undefined : request.signal);
  } catch (error) {
    held.done();
    throw error;
  }
}
