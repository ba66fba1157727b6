// The sessions of the server, newest activity first.

import { useCallback, useMemo, useState } from "react";
import type { Client } from "../data/bough.ts";
import { useFeed } from "../data/feed.tsx";
import { usePolled } from "../data/polled.ts";
import { useClient } from "../data/session.tsx";

export type Session = Awaited<ReturnType<Client["listSessions"]>>["sessions"][number];
export type Waiting = Awaited<ReturnType<Client["listInteractions"]>>["interactions"][number];

const pageSize = 50;

export interface Sessions {
  readonly sessions: readonly Session[];
  readonly hasMore: boolean;
  readonly error: unknown;
  more(): void;
  refresh(): Promise<void>;
}

export function useSessions(): Sessions {
  const client = useClient();
  const [pages, setPages] = useState(1);
  const ask = useCallback(async () => {
    const sessions: Session[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < pages; page++) {
      const answer = await client.listSessions({
        limit: pageSize,
        include: ["title"],
        ...(cursor !== undefined && { cursor }),
      });
      sessions.push(...answer.sessions);
      cursor = answer.cursor;
      if (cursor === undefined) break;
    }
    return { sessions, hasMore: cursor !== undefined };
  }, [client, pages]);
  const { value, error, refresh } = usePolled(ask, 30_000);
  useFeed(
    () => true,
    () => void refresh(),
  );
  const more = useCallback(() => setPages((count) => count + 1), []);
  return useMemo(
    () => ({ sessions: value?.sessions ?? none, hasMore: value?.hasMore ?? false, error, more, refresh }),
    [value, error, more, refresh],
  );
}

const none: readonly Session[] = [];

/** Every open question of the server, oldest first. */
export function useWaiting() {
  const client = useClient();
  const ask = useCallback(async () => {
    const { interactions } = await client.listInteractions({ limit: 200 });
    return interactions.filter(({ kind }) => kind !== "client-tool");
  }, [client]);
  const polled = usePolled(ask, 30_000);
  useFeed(
    ({ type }) => /^(question|session|branch-delete|run-end)/.test(type),
    () => void polled.refresh(),
  );
  return polled;
}

/** What people call a session: its title, else its first words, else its id. */
export function titleOf({ id, title }: Pick<Session, "id" | "title">, firstWords?: string): string {
  return title?.trim() || firstWords?.trim() || id;
}
