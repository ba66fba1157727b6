// A download: bytes that are handed out piece by piece, and given up when they are no longer taken.

const pieceBytes = 64 * 1024;

export interface DownloadOptions {
  /** Aborts when the client is gone. */
  readonly signal: AbortSignal;
  /** How long nothing may be taken; absent where the connection is watched by its holder. */
  readonly stalledMs?: number;
  /** Called once, when the bytes are no longer held. */
  readonly done: () => void;
}

export function downloadBody(
  bytes: Uint8Array,
  { signal, stalledMs, done }: DownloadOptions,
): ReadableStream<Uint8Array> {
  let rest: Uint8Array | undefined = bytes;
  let timer: NodeJS.Timeout | undefined;
  let onAbort = () => {};
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
        const onStalled = () => {
          if (finish()) controller.error(new Error("The download was not read."));
        };
        if (stalledMs !== undefined) timer = setTimeout(onStalled, stalledMs).unref();
        if (signal.aborted) onAbort();
        else signal.addEventListener("abort", onAbort);
      },
      pull(controller) {
        if (!rest) return;
        timer?.refresh();
        // A copy: a piece that is still on its way must not keep the whole.
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
