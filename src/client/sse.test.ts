import { expect, test } from "vitest";
import { createClient } from "./index.ts";
import { sseTransport } from "./sse.ts";
import type { Arrival } from "./transport.ts";

const text =
  'retry: 3000\n\n: \n\nid: 1\ndata: {"type":"event","event":{"seq":1,"type":"ü"}}\n\ndata: {"type":"ready","seq":1}\n\ndata: {"type":"ev';

/** The text as a stream, in pieces of so many bytes. */
function answer(size: number): Response {
  const bytes = new TextEncoder().encode(text);
  const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
    bytes.slice(i * size, (i + 1) * size),
  );
  return new Response(
    new ReadableStream({
      pull(controller) {
        const next = pieces.shift();
        if (next) controller.enqueue(next);
        else controller.close();
      },
    }),
  );
}

test.each([1, 2, 3, 7, 40, 1000])(
  "frames are whole, in pieces of %i bytes; what is cut off does not count",
  async (size) => {
    const send = async () => answer(size);
    const transport = sseTransport({ send } as unknown as Parameters<typeof sseTransport>[0], "/scope");
    const batches: (readonly Arrival[])[] = [];
    for await (const batch of await transport.open(0, new AbortController().signal)) batches.push(batch);
    expect(batches.flat().filter(({ type }) => type !== "retry")).toEqual([
      { type: "event", event: { seq: 1, type: "ü" } },
      { type: "ready", seq: 1 },
    ]);
    expect(batches.flat().filter(({ type }) => type === "retry")).toEqual([{ type: "retry", ms: 3000 }]);
    // A piece without a frame is a sign of life.
    if (size === 1) expect(batches.length).toBe(new TextEncoder().encode(text).length);
  },
);

test("a stream that is left is cancelled", async () => {
  let isCancelled = false;
  const body = new ReadableStream({
    async pull(controller) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      controller.enqueue(new TextEncoder().encode(": \n\n"));
    },
    cancel() {
      isCancelled = true;
    },
  });
  const fetch = (async () => new Response(body)) as unknown as typeof globalThis.fetch;
  const subscription = createClient({ url: "http://far", fetch })
    .branch({ agentId: "a", sessionId: "s" })
    .subscribe({
      onEvent: () => {},
      onConnection: ({ state }) => state === "replaying" && setTimeout(() => subscription.close(), 5),
    });
  await subscription.ended;
  await new Promise((resolve) => setTimeout(resolve, 5));
  expect(isCancelled).toBe(true);
});
