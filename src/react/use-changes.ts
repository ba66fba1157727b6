import { useEffect, useRef } from "react";
import type { Client } from "../client/index.ts";
import type { Change } from "../wire/changes.ts";

/** Options of `useChanges`. */
export interface UseChangesOptions {
  /** Only changes of this session (default: of all). */
  readonly sessionId?: string | undefined;
  /** Something has changed: read it again if it is shown. That of the latest render is called. */
  readonly onChange: (change: Change) => void;
  /** Changes may have been missed: read everything again that is shown. Also called when the stream fails for good. */
  readonly onStale?: () => void;
  /** Whether to listen (default true). */
  readonly isEnabled?: boolean;
}

/**
 * Listens to changes of sessions, or of one session, while the component is mounted.
 *
 * @example
 * useChanges(client, { onChange: () => refresh(), onStale: () => refresh() });
 */
export function useChanges(client: Pick<Client, "changes">, options: UseChangesOptions): void {
  const { sessionId, isEnabled = true } = options;
  const latest = useRef(options);
  useEffect(() => {
    latest.current = options;
  });
  useEffect(() => {
    if (!isEnabled) return undefined;
    const subscription = client.changes({
      ...(sessionId !== undefined && { sessionId }),
      onChange: (change) => latest.current.onChange(change),
      onStale: () => latest.current.onStale?.(),
    });
    void subscription.ended.then(({ state }) => {
      if (state === "failed") latest.current.onStale?.();
    });
    return () => subscription.close();
  }, [client, sessionId, isEnabled]);
}
