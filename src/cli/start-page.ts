// The page that `bough serve` shows at its start URL. It is static: it requests its data with the
// token behind the `#`, which it removes from the address bar and keeps in memory only, and shows it as text, never
// as HTML. The commands it suggests read the token from its file, since every user of the machine can see command lines.

const style = `
:root { color-scheme: light dark; --ink: #1d2420; --soft: #5d6a62; --line: #d9e0db; --paper: #fbfcfb; --leaf: #2f7d4f; --code: #f0f3f1; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4ebe6; --soft: #96a49b; --line: #2c3630; --paper: #141916; --leaf: #7cc79a; --code: #1c2420; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 46rem; margin: 0 auto; padding: 3rem 1.25rem 4rem; }
h1 { margin: 0; font-size: 1.9rem; letter-spacing: -.02em; }
h2 { margin: 2.2rem 0 .6rem; font-size: 1rem; }
p { margin: .4rem 0; color: var(--soft); }
a { color: var(--leaf); }
#state { display: inline-block; margin-top: 1.2rem; padding: .25rem .7rem; border: 1px solid var(--line); border-radius: 1rem; color: var(--ink); }
#state.good { border-color: var(--leaf); color: var(--leaf); }
#state.bad { border-color: #c0563b; color: #c0563b; }
ul { margin: 0; padding: 0; list-style: none; border-top: 1px solid var(--line); }
li { display: flex; justify-content: space-between; gap: 1rem; padding: .45rem 0; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
li span { color: var(--soft); white-space: nowrap; }
pre { margin: .4rem 0 1rem; padding: .8rem 1rem; border: 1px solid var(--line); border-radius: .5rem; background: var(--code); white-space: pre-wrap; overflow-wrap: anywhere; font: 13px/1.5 ui-monospace, monospace; }
`;

const script = String.raw`
const token = new URLSearchParams(location.hash.slice(1)).get("token") ?? "";
if (token) history.replaceState(null, "", location.pathname);
const at = (id) => document.getElementById(id);
const tokenFile = ".bough/token-" + (location.port || (location.protocol === "https:" ? 443 : 80));
const base = location.pathname.replace(/\/+$/, "");
const url = location.origin + base;
const ask = async (path) => {
  const response = await fetch(base + path, { headers: { authorization: "Bearer " + token } });
  if (!response.ok) throw new Error(response.status === 401 ? "The server refuses this token. Open the URL that bough serve printed." : "The server responded with status " + response.status + ".");
  return response.json();
};
const list = (id, rows, nothing) => {
  const items = rows.length > 0 ? rows : [[nothing, ""]];
  at(id).replaceChildren(...items.map(([text, more]) => {
    const item = document.createElement("li");
    const note = document.createElement("span");
    note.textContent = more;
    item.append(text, note);
    return item;
  }));
};
const say = (agent) => {
  const scope = url + "/agents/" + encodeURIComponent(agent).replace(/'/g, "%27") + "/sessions/hello/branches/main";
  at("chat").textContent = "npx bough chat --url " + url;
  at("curl").textContent = [
    'auth() { printf "authorization: Bearer %s" "$(cat ' + tokenFile + ')"; }',
    "json='content-type: application/json'",
    "",
    'curl -H @<(auth) -H "$json" ' + url + "/sessions -d '{\"sessionId\":\"hello\"}'",
    'curl -H @<(auth) -H "$json" ' + scope + "/inputs -d '{\"input\":\"What time is it?\"}'",
    "curl -H @<(auth) " + scope + "/state",
    "curl -H @<(auth) -N " + scope + "/events/live",
  ].join("\n");
};
const show = async () => {
  const [{ agents }, { sessions }] = await Promise.all([ask("/agents"), ask("/sessions?limit=8")]);
  list("agents", agents.map(({ id, name, source }) => [id, name && name !== id ? name : source === "stored" ? "stored" : ""]), "No agents.");
  list("sessions", sessions.map(({ id, lastActivity }) => [id, new Date(lastActivity).toLocaleString()]), "No sessions yet.");
  say(agents[0]?.id ?? "demo");
  at("state").textContent = "The server is running.";
  at("state").className = "good";
};
const refresh = () => show().catch((error) => {
  at("state").textContent = token ? error.message : "This address has no token. Open the URL that bough serve printed.";
  at("state").className = "bad";
});
say("demo");
refresh();
addEventListener("hashchange", () => location.reload());
addEventListener("focus", refresh);
`;

export const startPage = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Bough</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>Bough</h1>
<p>Durable sessions, branches and events for agents. This server stores every event in one ordered log per
branch, which can be forked, replayed, watched, and resumed after a crash.</p>
<div id="state">Connecting …</div>
<h2>Agents</h2>
<ul id="agents"></ul>
<h2>Newest sessions</h2>
<ul id="sessions"></ul>
<h2>Chat in a terminal</h2>
<pre id="chat"></pre>
<p>Run it in the directory where the server was started, which has the token file. Elsewhere, set <code>BOUGH_TOKEN</code>.</p>
<h2>Use curl</h2>
<pre id="curl"></pre>
<p>Every route is listed in <code>/openapi.json</code>; each request needs the header <code>authorization: Bearer TOKEN</code>.</p>
</main>
<script>${script}</script>
</body>
</html>
`;
