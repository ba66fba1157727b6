import type { SessionQuery, SessionRecord, Store } from "./store.ts";

/** Every session that the query finds, page by page. One that becomes active meanwhile may come twice. */
export async function* everySession(
  store: Pick<Store, "listSessions">,
  query: Omit<SessionQuery, "limit" | "cursor"> = {},
): AsyncGenerator<SessionRecord> {
  let cursor: string | undefined;
  do {
    const page = await store.listSessions({ ...query, limit: 500, ...(cursor !== undefined && { cursor }) });
    yield* page.sessions;
    cursor = page.cursor;
  } while (cursor !== undefined);
}
