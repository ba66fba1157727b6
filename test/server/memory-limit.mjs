// A server on SQLite that is given large inputs, one conversation each, and asked for them again; run with a small heap.
//   node --max-old-space-size=96 memory-limit.mjs '{"path":"…/bough.db","inputs":160}'

import { scriptedModel } from "../../dist/scripted/index.js";
import { createServer } from "../../dist/server/index.js";
import { sqliteStore } from "../../dist/stores/sqlite/index.js";

const { path, inputs, limits } = JSON.parse(process.argv[2]);
const model = scriptedModel(() => {
  // It keeps every prompt for tests to look at, which here would be the leak.
  model.calls.length = 0;
  return "Read.";
});
const server = createServer({
  agents: { helper: { model } },
  store: await sqliteStore(path),
  token: "0123456789abcdef",
  limits: { requestsPerSecond: 1e6, burst: 1e6, ...limits },
});
const headers = { authorization: "Bearer 0123456789abcdef", "content-type": "application/json" };

async function ask(method, route, body) {
  const request = new Request(`http://localhost${route}`, {
    method,
    headers,
    ...(body && { body: JSON.stringify(body) }),
  });
  const response = await server.fetch(request);
  const answer = await response.json();
  if (response.status >= 400) throw new Error(JSON.stringify(answer));
  return answer;
}

const input = "x".repeat(1024 * 1024 - 1000);
for (let n = 0; n < inputs; n++) {
  const scope = `/agents/helper/sessions/s${n}/branches/main`;
  await ask("POST", "/sessions", { sessionId: `s${n}` });
  await ask("POST", `${scope}/inputs`, { input: `${n} ${input}` });
  while ((await ask("GET", `${scope}/runs/active`)) !== null) await new Promise(setImmediate);
}
let read = 0;
for (let n = 0; n < inputs; n++) {
  const { messages } = await ask("GET", `/agents/helper/sessions/s${n}/branches/main/state`);
  read += messages.length;
}
await server.close();
console.log(read);
