import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { RemoteBranch } from "../client/index.ts";
import type { Upload } from "../wire/handle.ts";
import type { ContentBody } from "../wire/types.ts";

/** A file on its way to the branch. */
export interface PendingUpload {
  readonly id: number;
  readonly name?: string;
  /** How many bytes it has; unknown for a stream. */
  readonly size?: number;
  /** How many of them were sent. */
  readonly sent: number;
  /** Ends it; nothing of it is stored. */
  cancel(): void;
}

/** What a file is stored as. */
export interface UploadRequest {
  /** Default: the name of a `File`. */
  readonly name?: string;
}

const none: readonly PendingUpload[] = [];

/** The files on their way to the branch. They end with the component, and when it shows another branch. */
export function useUploads<Event>(handle: RemoteBranch<Event>) {
  const [pending, setPending] = useState<{ handle: RemoteBranch<Event>; uploads: readonly PendingUpload[] }>();
  const next = useRef(0);
  const running = useMemo(() => ({ handle, ends: new Set<AbortController>() }), [handle]);
  useEffect(
    () => () => {
      for (const end of running.ends) end.abort();
    },
    [running],
  );
  const upload = useCallback(
    async (bytes: Upload, request: UploadRequest = {}): Promise<ContentBody> => {
      const end = new AbortController();
      running.ends.add(end);
      const id = ++next.current;
      const change = (to: (uploads: readonly PendingUpload[]) => readonly PendingUpload[]) =>
        setPending((before) => ({ handle, uploads: to(before?.handle === handle ? before.uploads : none) }));
      const { name = (bytes as { name?: string }).name } = request;
      const size = (bytes as Blob).size ?? (bytes as Uint8Array).byteLength;
      const about = { ...(name !== undefined && { name }), ...(size !== undefined && { size }) };
      change((uploads) => [...uploads, { id, ...about, sent: 0, cancel: () => end.abort() }]);
      const onProgress = (sent: number) =>
        change((uploads) => uploads.map((each) => (each.id === id ? { ...each, sent } : each)));
      try {
        return await handle.content.put(bytes, {
          ...{ signal: end.signal, onProgress },
          ...(name !== undefined && { name }),
        });
      } finally {
        running.ends.delete(end);
        change((uploads) => uploads.filter((each) => each.id !== id));
      }
    },
    [handle, running],
  );
  return { uploads: pending?.handle === handle ? pending.uploads : none, upload };
}
