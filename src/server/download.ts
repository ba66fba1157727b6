// A download: bytes that are sent in chunks, and released when the client stops reading.

const pieceBytes = 64 * 1024;

export interface DownloadOptions {
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
  /** How long the client may read nothing; absent if the owner of the connection enforces it. */
  readonly stalledMs?: number;
  /** Called once, when the bytes are no longer held. */
  readonly done: () => void;
}

export function downloadBody(
  bytes: Uint8Array,
  { signal, stalledMs, done }: DownloadOptions,
): ReadableStream<Uint8Array> {
  let rest: Uint8Array | undefined = bytes;
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
      pull(controller) {
        if (!rest) return;
        expectReading();
        // A copy, so that a chunk in transit does not keep the whole buffer in memory.
        controller.enqueue(rest.slice(0, pieceBytes));
        rest = rest.subarray(pieceBytes);
        if (rest.length > 0) return;
        finish();
        controller.close();
      },
      cancel: () => void finish(),
    },
    { highWaterMark: 0 },
  );
}
