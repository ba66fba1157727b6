// A chat on a branch. The session and branch are in the URL's fragment, so a reload or a link opens the same conversation.

import { createClient } from "bough/client";
import { useBranch } from "bough/react";
import { StrictMode, useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import { Composer, Messages, Questions } from "./conversation.jsx";

const placeOf = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
const { url, token, transport = "sse" } = placeOf();
const client = url && createClient({ url, token, transport });

/** What the agent can ask this page. */
const tools = {
  page_info: {
    execute: () => ({
      time: new Date().toLocaleTimeString(),
      timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
      language: navigator.language,
    }),
  },
};

function go(to) {
  location.hash = new URLSearchParams({ ...placeOf(), ...to }).toString();
}

function usePlace() {
  const [place, setPlace] = useState(placeOf);
  useEffect(() => {
    const look = () => setPlace(placeOf());
    addEventListener("hashchange", look);
    return () => removeEventListener("hashchange", look);
  }, []);
  return place;
}

function App() {
  const { agent = "helper", session, branch = "main" } = usePlace();
  const [error, setError] = useState();
  useEffect(() => {
    if (session) return;
    client.createSession().then(({ id }) => go({ session: id, branch: "main" }), setError);
  }, [session]);
  if (error) return <p className="failure alone">{error.message}</p>;
  if (!session) return null;
  return <Chat key={session} scope={{ agentId: agent, sessionId: session, branchId: branch }} />;
}

function Chat({ scope }) {
  const use = useBranch(client, scope, { tools });
  const show = (id) => go({ branch: id });
  const depths = depthsOf(use.branches);
  const forkAt = async ({ id: from }) =>
    show((await use.fork({ from, name: `fork ${use.branches.length}` })).scope.branchId);
  const forksAt = ({ id }) =>
    use.branches.filter(
      ({ forkedFrom, forkedAtMessageId }) => forkedFrom === scope.branchId && forkedAtMessageId === id,
    );
  return (
    <div className="page">
      <nav>
        <h1>Bough</h1>
        <button type="button" className="new" onClick={() => go({ session: "", branch: "main" })}>
          New conversation
        </button>
        <h2>Branches</h2>
        <ul>
          {use.branches.map((branch) => (
            <li key={branch.id} style={{ paddingLeft: `${depths.get(branch.id) * 14}px` }}>
              <button
                type="button"
                className={branch.id === scope.branchId ? "branch here" : "branch"}
                onClick={() => show(branch.id)}
              >
                <span>{branch.name ?? branch.id}</span>
                <small>{branch.messageCount}</small>
              </button>
            </li>
          ))}
        </ul>
        <Line connection={use.connection} />
      </nav>
      <main>
        <header>
          <strong data-testid="branch">{use.branch?.name ?? scope.branchId}</strong>
          <Siblings siblings={use.siblings} id={scope.branchId} show={show} />
          <span className={`status ${use.status}`} data-testid="status">
            {use.status}
          </span>
        </header>
        <Messages use={use} forkAt={forkAt} forksAt={forksAt} show={show} />
        <Questions use={use} own={tools} />
        {use.error && <p className="failure">{use.error.message}</p>}
        <Composer use={use} />
      </main>
    </div>
  );
}

/** From one fork of the same point to the next. */
/** How many branches each one comes from; a branch is listed after the one it was forked from. */
function depthsOf(branches) {
  const depths = new Map();
  for (const { id, forkedFrom } of branches) depths.set(id, forkedFrom === undefined ? 0 : depths.get(forkedFrom) + 1);
  return depths;
}

function Siblings({ siblings, id, show }) {
  const at = siblings.findIndex((branch) => branch.id === id);
  if (siblings.length < 2 || at < 0) return null;
  const step = (by, label, sign) => (
    <button type="button" aria-label={label} disabled={!siblings[at + by]} onClick={() => show(siblings[at + by].id)}>
      {sign}
    </button>
  );
  return (
    <span className="siblings" data-testid="siblings">
      {step(-1, "Previous sibling", "‹")}
      {at + 1} / {siblings.length}
      {step(1, "Next sibling", "›")}
    </span>
  );
}

function Line({ connection }) {
  const words = { live: "connected", waiting: "connection lost, trying again", failed: "not connected" };
  return <p className={`line ${connection.state}`}>{words[connection.state] ?? "connecting"}</p>;
}

createRoot(document.getElementById("root")).render(
  <StrictMode>
    {client ? <App /> : <p className="failure alone">Open the whole address that the server has printed.</p>}
  </StrictMode>,
);
