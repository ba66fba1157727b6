// A server on SQLite that is given large inputs, in one conversation each or all in one, and asked for them again; run with a
// small heap. Prints how many messages it reads.
//   node --max-old-space-size=96 memory-limit.mjs '{"path":"…/bough.db","inputs":160,"isOne":false}'

import { scriptedModel } from "../../dist/scripted/index.js";
import { createServer } from "../../dist/server/index.js";
import { sqliteStore } from "../../dist/stores/sqlite/index.js";

const { path, inputs, isOne, limits } = JSON.parse(process.argv[2]);
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
  if (response.status === 413 && isOne) return answer;
  if (response.status >= 400) throw new Error(JSON.stringify(answer));
  return answer;
}

const sessionOf = (n) => (isOne ? "s0" : `s${n}`);

const input = "x".repeat(1024 * 1024 - 1000);
for (let n = 0; n < inputs; n++) {
  const scope = `/agents/helper/sessions/${sessionOf(n)}/branches/main`;
  await ask("PUT", `/sessions/${sessionOf(n)}`, {});
  await ask("POST", `${scope}/inputs`, { input: `${n} ${input}` });
  while ((await ask("GET", `${scope}/runs/active`)) !== null) await new Promise(setImmediate);
}
let read = 0;
for (let n = 0; n < (isOne ? 1 : inputs); n++) {
  const route = `/sessions/${sessionOf(n)}/branches/main/messages`;
  for (let page = {}; page.before !== undefined || !page.messages; read += page.messages.length) {
    page = await ask("GET", `${route}${page.before === undefined ? "" : `?before=${page.before}`}`);
  }
}
await server.close();
console.log(read);
