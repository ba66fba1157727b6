import type { QueuedInput } from "../events/queue.ts";

/** An input that waits on a branch, as clients see it: without how its turn is to run. */
export type QueuedInputBody = Omit<QueuedInput, "metadata" | "request">;

export function queuedInputBody(input: QueuedInput): QueuedInputBody {
  const { metadata: _metadata, request: _request, ...body } = input;
  return body;
}
