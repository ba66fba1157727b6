// Runs one turn of the kill matrix on the database at PATH. It dies at the failpoint that its environment names.
//   node asker.mjs PATH library|http REQUEST

import { createAgent, defineTool } from "bough";
import { createServer, serve } from "bough/server";
import { z } from "zod";
import { scriptedModel } from "../../../dist/scripted/index.js";
import { agentOptions, httpRequests, requests } from "./agent.mjs";

const [path, door, name] = process.argv.slice(2);
const store = `sqlite:${path}`;
const options = agentOptions({ defineTool, scriptedModel, z }, `${path}.calls`);
const session = { metadata: { team: "red" } };

if (door === "library") {
  const agent = createAgent({ ...options, store });
  await agent.createSession("s", session);
  await agent.run("Go", { sessionId: "s", ...requests(z)[name] }).result;
  await agent.close();
} else {
  const server = createServer({ agents: { matrix: options }, store, logger: options.logger });
  const { url, close } = await serve(server, { port: 0 });
  const ask = (path, body) => {
    const headers = { "content-type": "application/json", authorization: `Bearer ${server.token}` };
    return fetch(url + path, { method: body ? "POST" : "GET", headers, ...(body && { body: JSON.stringify(body) }) });
  };
  await ask("/sessions", { sessionId: "s", ...session });
  const scope = "/agents/matrix/sessions/s/branches/main";
  await ask(`${scope}/inputs`, { input: "Go", ...httpRequests[name] });
  for (;;) {
    const { openTurn } = await (await ask(`${scope}/state`)).json();
    if (!openTurn) break;
  }
  await close();
}
