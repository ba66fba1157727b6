// Live streams on Node, written directly to the connection: a web stream in between would cost more per event
// and reader than sending it.

import type { ServerResponse } from "node:http";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { streamOf } from "./sse-stream.ts";

// If the adaptor has replaced the global class, reading the body makes this response one that it recognises.
void RESPONSE_ALREADY_SENT.body;

/** Writes the response if it is a live stream, and returns what the adaptor expects then. */
export function writeStream(response: Response, outgoing: ServerResponse): Response | undefined {
  const stream = streamOf(response);
  if (!stream) return undefined;
  if (outgoing.destroyed) {
    stream.leave();
    return RESPONSE_ALREADY_SENT;
  }
  outgoing.on("close", () => stream.leave());
  outgoing.on("drain", () => stream.resume());
  outgoing.on("error", ignore);
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  outgoing.flushHeaders();
  stream.open({
    hasRoom: () => !outgoing.writableNeedDrain && !outgoing.destroyed,
    write: (bytes) => void outgoing.write(bytes),
    end: () => void outgoing.end(),
    drop: () => void outgoing.destroy(),
  });
  return RESPONSE_ALREADY_SENT;
}

/** A broken connection emits "close" right after, which is handled. */
function ignore(): void {}
