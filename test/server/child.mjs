// A server in a process of its own, to be killed: prints its address, and does what its inputs say.
//   node child.mjs '{"name":"one","url":"sqlite:…" | "postgres:…","schema":"…","token":"…","leaseMs":500}'
// Inputs: "hang on one" never ends on the node of that name, "add" asks for permission, everything else is counted slowly
// enough to be caught in the middle.

import { setTimeout as sleep } from "node:timers/promises";
import { defineTool } from "../../dist/index.js";
import { scriptedModel } from "../../dist/scripted/index.js";
import { createServer, serve } from "../../dist/server/index.js";
import { postgresStore } from "../../dist/stores/postgres/index.js";
import { sqliteStore } from "../../dist/stores/sqlite/index.js";

const {
  name,
  url,
  schema,
  token,
  leaseMs,
  limits,
  isQuiet,
  studio,
  port = 0,
  delayMs = 4,
} = JSON.parse(process.argv[2]);
const logger = isQuiet ? { warn: () => {} } : console;
const store = url.startsWith("sqlite:") ? await sqliteStore(url.slice(7)) : await postgresStore(url, { schema });

function reply(prompt) {
  const last = prompt.at(-1);
  if (last.role === "tool") return "Added.";
  const text = last.content.map((part) => part.text).join("");
  if (text === `hang on ${name}`) return new Promise(() => {});
  if (text.startsWith("hang on")) return `From ${name}.`;
  if (text === "add") return { calls: [{ name: "add", input: { a: 1, b: 2 } }] };
  return `${text}: one two three four five six seven eight nine ten eleven twelve`;
}

const add = defineTool({
  description: "Adds.",
  input: { jsonSchema: { type: "object" } },
  permission: true,
  execute: ({ a, b }) => a + b,
});
const model = scriptedModel(reply, { chunks: 12, delayMs, sleep: (ms) => sleep(ms) });
const server = createServer({
  // Owners of hosts that are not this one: only their leases tell that they are dead.
  agents: { helper: { model, tools: { add }, logger, owner: `${name}/1`, ...(leaseMs && { leaseMs }) } },
  store,
  token,
  logger,
  definitions: {
    models: { "scripted/a": scriptedModel(() => "From A."), "scripted/b": scriptedModel(() => "From B.") },
  },
  ...(studio && { studio }),
  limits: { requestsPerSecond: 1e6, burst: 1e6, ...limits },
});
const serving = await serve(server, { port });
process.on("SIGTERM", async () => {
  await serving.close();
  process.exit(0);
});
console.log(serving.url);
