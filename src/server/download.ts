// A download: pieces that are read from the store when the client reads, and released when it stops reading.

const pieceBytes = 64 * 1024;

export interface DownloadOptions {
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
  /** How long the client may read nothing; absent if the owner of the connection enforces it. */
  readonly stalledMs?: number;
  /** Called once, when nothing is held any more. */
  readonly done: () => void;
}

export function downloadBody(
  pieces: AsyncIterable<Uint8Array>,
  { signal, stalledMs, done }: DownloadOptions,
): ReadableStream<Uint8Array> {
  const source = pieces[Symbol.asyncIterator]();
  let rest: Uint8Array | undefined = new Uint8Array(0);
  let timer: ReturnType<typeof setTimeout> | undefined;
  let onAbort = () => {};
  let onStalled = () => {};
  const expectReading = () => {
    if (stalledMs === undefined) return;
    clearTimeout(timer);
    timer = setTimeout(() => onStalled(), stalledMs);
    timer.unref?.();
  };
  const finish = () => {
    if (!rest) return false;
    rest = undefined;
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
    void Promise.resolve(source.return?.()).catch(() => {});
    done();
    return true;
  };
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        onAbort = () => {
          if (finish()) controller.close();
        };
        onStalled = () => {
          if (finish()) controller.error(new Error("The client did not read the download."));
        };
        expectReading();
        if (signal.aborted) onAbort();
        else signal.addEventListener("abort", onAbort);
      },
      async pull(controller) {
        // Until there is something to read, the client can't be blamed for not reading.
        clearTimeout(timer);
        try {
          while (rest && rest.length === 0) {
            const next = await source.next();
            if (!rest) return;
            if (next.done) {
              finish();
              return controller.close();
            }
            rest = next.value;
          }
        } catch (error) {
          if (finish()) controller.error(error);
        }
        if (!rest) return;
        expectReading();
        // A copy, so that a chunk in transit does not keep the whole piece in memory.
        controller.enqueue(rest.slice(0, pieceBytes));
        rest = rest.subarray(pieceBytes);
      },
      cancel: () => void finish(),
    },
    { highWaterMark: 0 },
  );
}
