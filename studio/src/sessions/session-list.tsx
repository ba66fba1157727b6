// The list of sessions at the left.

import { memo, useMemo, useState } from "react";
import { branchPlace, go } from "../place.ts";
import { IconButton } from "../ui/button.tsx";
import { ago } from "../ui/time.ts";
import { VList } from "../ui/virtual.tsx";
import { useSessionFacts } from "./session-facts.ts";
import { type Session, type Sessions, titleOf, type Waiting } from "./sessions.ts";

interface SessionListProps {
  readonly list: Sessions;
  readonly waiting: readonly Waiting[];
  readonly here: string | undefined;
  readonly onNew: () => void;
}

export const SessionList = memo(function SessionList({ list, waiting, here, onNew }: SessionListProps) {
  const [filter, setFilter] = useState("");
  const wanted = filter.trim().toLowerCase();
  const shown = useMemo(
    () =>
      list.sessions.filter(
        (session) => wanted === "" || `${titleOf(session)} ${session.id}`.toLowerCase().includes(wanted),
      ),
    [list.sessions, wanted],
  );
  const asking = useMemo(() => new Set(waiting.map(({ sessionId }) => sessionId)), [waiting]);
  return (
    <nav className="side" aria-label="Sessions">
      <header>
        <h2>Sessions</h2>
        <IconButton icon="plus" label="New session (n)" onClick={onNew} />
      </header>
      <input
        type="search"
        aria-label="Find a session"
        placeholder="Find a session"
        value={filter}
        onChange={(event) => setFilter(event.target.value)}
      />
      {list.sessions.length === 0 && (
        <p className="quiet pad">{list.error === undefined ? "No sessions yet." : "The sessions can’t be read."}</p>
      )}
      <VList className="session-rows" data={shown}>
        {(session) => (
          <SessionRow
            key={session.id}
            session={session}
            isHere={session.id === here}
            isAsking={asking.has(session.id)}
          />
        )}
      </VList>
      {list.hasMore && (
        <button type="button" className="plain" onClick={list.more}>
          Older sessions
        </button>
      )}
    </nav>
  );
});

function SessionRow({ session, isHere, isAsking }: { session: Session; isHere: boolean; isAsking: boolean }) {
  const { user } = session.metadata;
  const main = useSessionFacts(session);
  const [mark, words] = isAsking
    ? ["asking", "waits for you"]
    : main?.openTurnId !== undefined
      ? ["running", "has an open turn"]
      : main?.ended === "failed"
        ? ["bad", "its last turn failed"]
        : ["none", ""];
  return (
    <button
      type="button"
      className={isHere ? "row here" : "row"}
      aria-current={isHere ? "page" : undefined}
      onClick={() => go(branchPlace(session.id, undefined))}
    >
      <span className="row-title">
        <span className={`dot ${mark}`} {...(words ? { role: "img", "aria-label": words } : { "aria-hidden": true })} />
        <span className="one-line">{titleOf(session, main?.firstWords)}</span>
      </span>
      <span className="row-about">
        {ago(session.lastActivity)}
        {typeof user === "string" && <span>{user}</span>}
      </span>
    </button>
  );
}
