/** The pieces of a stream, by its reader: not every platform can iterate over a stream. Lets go of a stream that is left early. */
export async function* readPieces(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  const reader = stream.getReader();
  let isDone = false;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      isDone = done;
      if (done) return;
      yield value;
    }
  } finally {
    if (!isDone) void reader.cancel().catch(() => {});
  }
}

/** Pieces as a stream that reads no further than its reader does. */
export function streamPieces(pieces: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const source = pieces[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await source.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: async () => void (await source.return?.()),
    },
    { highWaterMark: 0 },
  );
}
