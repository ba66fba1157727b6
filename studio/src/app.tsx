// The frame: the bar, the sessions at the left, and the place in the middle.

import { useCallback, useEffect, useMemo, useState } from "react";
import { Agents } from "./agents/agents.tsx";
import { type Agent, useAgent } from "./agents/use-agent.ts";
import { BranchScreen } from "./conversation/branch-view.tsx";
import { usePolled } from "./data/polled.ts";
import { useClient } from "./data/session.tsx";
import { visitsOf } from "./data/visits.ts";
import { Inbox } from "./inbox/inbox.tsx";
import { type Command, Palette } from "./palette/palette.tsx";
import { branchPlace, go, type Place, usePlace } from "./place.ts";
import { RenameSession } from "./sessions/session-dialogs.tsx";
import { SessionList } from "./sessions/session-list.tsx";
import { type Session, titleOf, useSessions, useWaiting } from "./sessions/sessions.ts";
import { KeysHelp } from "./settings/keys-help.tsx";
import { Settings } from "./settings/settings.tsx";
import { Mark } from "./ui/icon.tsx";
import { useKeys } from "./ui/keys.ts";
import { Menu } from "./ui/menu.tsx";
import { useToaster } from "./ui/toast.tsx";

type Asked = "palette" | "keys" | "rename";

const goTo = (to: Place) => () => go(to);

export function App() {
  const client = useClient();
  const place = usePlace();
  const list = useSessions();
  const { value: waiting, refresh: refreshWaiting } = useWaiting();
  const agents = usePolled(
    useCallback(() => client.listAgents(), [client]),
    60_000,
  ).value;
  const [asked, ask] = useState<Asked>();
  const [sides, setSides] = useState(() => ({ left: innerWidth > 700, right: innerWidth > 1080 }));
  const { attempt } = useToaster();
  const session = list.sessions.find(({ id }) => id === place.session);
  const waitingHere = waiting ?? [];
  const newSession = useCallback(
    () =>
      attempt(async () => {
        const { id } = await client.createSession();
        await list.refresh();
        go(branchPlace(id, undefined));
      }),
    [attempt, client, list],
  );
  useTitle(waitingHere.length, session ? titleOf(session) : undefined);
  useKeys({
    "ctrl+k": () => ask("palette"),
    "?": () => ask("keys"),
    n: () => void newSession(),
    "g s": goTo({ view: "sessions" }),
    "g i": goTo({ view: "inbox" }),
    "g a": goTo({ view: "agents" }),
    "ctrl+b": () => setSides((now) => ({ ...now, left: !now.left })),
    "ctrl+j": () => setSides((now) => ({ ...now, right: !now.right })),
  });
  const commands = useCommands(list.sessions, {
    newSession: () => void newSession(),
    showKeys: () => ask("keys"),
    rename: session && (() => ask("rename")),
  });
  return (
    <div className={`app${sides.left ? " left" : ""}${sides.right && place.view === "branch" ? " right" : ""}`}>
      <Bar session={session} waiting={waitingHere.length} ask={ask} />
      {(sides.left || place.view === "sessions") && (
        <SessionList list={list} waiting={waitingHere} here={place.session} onNew={() => void newSession()} />
      )}
      <Middle
        place={place}
        session={session}
        sessions={list.sessions}
        waiting={waiting}
        agents={agents}
        isPaneOpen={sides.right}
        onAnswered={refreshWaiting}
      />
      <nav className="tabs-below" aria-label="Panes">
        <button
          type="button"
          onClick={() => setSides((now) => ({ left: !now.left, right: false }))}
          aria-pressed={sides.left}
        >
          Sessions
        </button>
        <button
          type="button"
          onClick={() => setSides({ left: false, right: false })}
          aria-pressed={!sides.left && !sides.right}
        >
          Conversation
        </button>
        <button
          type="button"
          onClick={() => setSides((now) => ({ left: false, right: !now.right }))}
          aria-pressed={sides.right}
        >
          Branches
        </button>
      </nav>
      {asked === "palette" && <Palette commands={commands} onClose={() => ask(undefined)} />}
      {asked === "keys" && <KeysHelp onClose={() => ask(undefined)} />}
      {asked === "rename" && session && (
        <RenameSession session={session} onDone={list.refresh} onClose={() => ask(undefined)} />
      )}
    </div>
  );
}

interface BarProps {
  readonly session: Session | undefined;
  readonly waiting: number;
  readonly ask: (what: Asked) => void;
}

function Bar({ session, waiting, ask }: BarProps) {
  return (
    <header className="bar">
      <button type="button" className="brand" onClick={goTo({ view: "sessions" })}>
        <Mark /> Bough
      </button>
      {session && (
        <button type="button" className="session-title one-line" title="Rename" onClick={() => ask("rename")}>
          {titleOf(session)}
        </button>
      )}
      <button type="button" className="find" onClick={() => ask("palette")}>
        <span>Find or do</span>
        <kbd>Ctrl K</kbd>
      </button>
      {waiting > 0 && (
        <button type="button" className="waits" onClick={goTo({ view: "inbox" })}>
          <span className="number">{waiting}</span> {waiting === 1 ? "waits" : "wait"}
        </button>
      )}
      <Menu
        label="Places"
        items={[
          { label: "Sessions", onClick: goTo({ view: "sessions" }) },
          { label: "Inbox", onClick: goTo({ view: "inbox" }) },
          { label: "Agents", onClick: goTo({ view: "agents" }) },
          { label: "Settings", onClick: goTo({ view: "settings" }) },
          { label: "Keys", onClick: () => ask("keys") },
        ]}
      />
    </header>
  );
}

const noAgents: readonly Agent[] = [];

interface MiddleProps {
  readonly place: Place;
  readonly session: Session | undefined;
  readonly sessions: readonly Session[];
  readonly waiting: ReturnType<typeof useWaiting>["value"];
  readonly agents: readonly Agent[] | undefined;
  readonly isPaneOpen: boolean;
  readonly onAnswered: () => Promise<void>;
}

function Middle({ place, session, sessions, waiting, agents, isPaneOpen, onAnswered }: MiddleProps) {
  const { session: sessionId } = place;
  const branchId = place.branch ?? (sessionId === undefined ? "main" : (visitsOf(sessionId).at(-1) ?? "main"));
  const [agentId, chooseAgent] = useAgent(sessionId, branchId, session, agents);
  const defaultAgent = agents?.[0]?.id;
  const scope = useMemo(
    () => (sessionId === undefined || agentId === undefined ? undefined : { agentId, sessionId, branchId }),
    [agentId, sessionId, branchId],
  );
  if (place.view === "inbox")
    return <Inbox waiting={waiting} sessions={sessions} defaultAgent={defaultAgent} onAnswered={onAnswered} />;
  if (place.view === "agents") return <Agents />;
  if (place.view === "settings") return <Settings />;
  if (place.view === "branch" && scope) {
    return (
      <BranchScreen
        key={`${scope.agentId}/${scope.sessionId}/${scope.branchId}`}
        scope={scope}
        place={place}
        isPaneOpen={isPaneOpen}
        agents={agents ?? noAgents}
        onAgent={chooseAgent}
      />
    );
  }
  return (
    <main className="page" aria-label="Welcome">
      <p className="quiet">
        {sessions.length > 0 ? "Choose a session, or begin a new one with n." : "Begin a session with n."}
      </p>
    </main>
  );
}

function useTitle(waiting: number, title: string | undefined): void {
  useEffect(() => {
    document.title = `${waiting > 0 ? `(${waiting}) ` : ""}${title ?? "Bough Studio"}`;
  }, [waiting, title]);
}

interface Doings {
  readonly newSession: () => void;
  readonly showKeys: () => void;
  readonly rename: (() => void) | undefined;
}

function useCommands(sessions: readonly Session[], { newSession, showKeys, rename }: Doings): readonly Command[] {
  return [
    { label: "New session", keys: "n", run: newSession },
    ...(rename ? [{ label: "Rename this session", run: rename }] : []),
    { label: "Inbox", keys: "g i", run: () => go({ view: "inbox" }) },
    { label: "Agents", keys: "g a", run: () => go({ view: "agents" }) },
    { label: "Settings", run: () => go({ view: "settings" }) },
    { label: "Keys", keys: "?", run: showKeys },
    ...sessions.map((session) => ({
      label: titleOf(session),
      about: "session",
      run: () => go(branchPlace(session.id, undefined)),
    })),
  ];
}
