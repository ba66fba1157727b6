// Server-sent events by fetch: unlike EventSource, it can send a token and tell a refusal from a broken line.

import type { Frame } from "../wire/frames.ts";
import { SseReader } from "../wire/sse.ts";
import type { Http } from "./http.ts";
import type { Arrival, LiveQuery, Transport } from "./transport.ts";

export function sseTransport(http: Http, scopePath: string, wanted: LiveQuery = {}): Transport {
  return {
    async open(after, signal) {
      const headers = { accept: "text/event-stream" };
      const response = await http.send("GET", `${scopePath}/events/live`, {
        query: { after, ...wanted },
        headers,
        signal,
      });
      return batchesOf(response);
    },
  };
}

async function* batchesOf(response: Response): AsyncGenerator<readonly Arrival[]> {
  const reader = response.body!.getReader();
  const decoder = new TextDecoder();
  const sse = new SseReader();
  try {
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      const before = sse.retryMs;
      const events = sse.read(decoder.decode(piece.value, { stream: true }));
      const batch: Arrival[] = events.map(({ data }) => JSON.parse(data) as Frame);
      if (sse.retryMs !== undefined && sse.retryMs !== before) batch.push({ type: "retry", ms: sse.retryMs });
      yield batch;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
