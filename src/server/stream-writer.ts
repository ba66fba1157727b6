// Live streams on Node, written to the connection itself: a web stream in between would cost every event of every reader
// more than sending it does.

import type { ServerResponse } from "node:http";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { streamOf } from "./sse-stream.ts";

// Where the adaptor has replaced the global class, only asking for the body makes this one that it knows again.
void RESPONSE_ALREADY_SENT.body;

/** Answers with the response if it is a live stream, and returns what the adaptor is told then. */
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

/** A connection that broke is closed right after, and that is told. */
function ignore(): void {}
