import { BoughError } from "../../base/errors.ts";
import { type JsonObject, searchText } from "../../base/json.ts";
import {
  compareActivity,
  decodeCursor,
  defaultPageSize,
  encodeCursor,
  type SessionPage,
  type StoreSessionQuery,
  spaceOf,
} from "../../log/index.ts";
import { paths } from "./layout.ts";
import type { ListedSession, Sessions } from "./sessions.ts";

const readAtOnce = 64;

/**
 * Reads what a listing looks at of every session, once; from then on every change keeps it. `look` runs a stretch while
 * nothing is in flight, so that nothing is listed that is not durable.
 */
export async function prepareList(sessions: Sessions, look: (see: () => void) => Promise<void>): Promise<void> {
  const names = [...sessions.names];
  const listed = new Map<string, ListedSession>();
  sessions.listed = listed;
  while (names.length > 0) {
    await look(() => {
      for (const name of names.splice(-readAtOnce)) {
        const found = sessions.names.has(name) ? readListed(sessions, name) : undefined;
        if (found && !listed.has(found.id)) listed.set(found.id, found);
      }
    });
  }
}

/** A damaged session is in no list, so that the others can be; maintain() tells of it. */
function readListed(sessions: Sessions, name: string): ListedSession | undefined {
  try {
    const { id, activeAt, metadata } = sessions.recordAt(`${paths.sessions}/${name}`);
    return { id, activeAt, metadata };
  } catch (error) {
    if (BoughError.is(error, "store_corrupt")) return undefined;
    throw error;
  }
}

export function listSessions(sessions: Sessions, query: StoreSessionQuery): SessionPage {
  const { metadata = {}, activeBefore = Number.POSITIVE_INFINITY, limit = defaultPageSize, space } = query;
  const start = query.cursor === undefined ? undefined : decodeCursor(query.cursor);
  const wanted = Object.entries(metadata);
  const matches: ListedSession[] = [];
  for (const listed of sessions.listed!.values()) {
    if (listed.activeAt >= activeBefore || (start && compareActivity(start, listed) >= 0)) continue;
    if (space !== undefined && spaceOf(listed.id) !== space) continue;
    if (wanted.every(([key, text]) => hasText(listed.metadata, key, text))) matches.push(listed);
  }
  const page = firstOf(matches, limit);
  const records = page.map(({ id }) => sessions.recordAt(sessions.pathOf(id)));
  const last = records.at(-1);
  return last && matches.length > limit ? { sessions: records, cursor: encodeCursor(last) } : { sessions: records };
}

const worthSelecting = 256;

/** The first few in the order of a listing, without sorting them all when there are many more. */
function firstOf(matches: ListedSession[], count: number): ListedSession[] {
  if (count > worthSelecting || matches.length <= count) return matches.sort(compareActivity).slice(0, count);
  const first: ListedSession[] = [];
  for (const match of matches) {
    if (first.length === count && (count === 0 || compareActivity(match, first.at(-1)!) >= 0)) continue;
    const at = first.findIndex((each) => compareActivity(match, each) < 0);
    first.splice(at < 0 ? first.length : at, 0, match);
    if (first.length > count) first.pop();
  }
  return first;
}

function hasText(metadata: JsonObject, key: string, text: string): boolean {
  return Object.hasOwn(metadata, key) && searchText(metadata[key]!) === text;
}
