// A server of two tenants in a process of its own, with tools that let errors float. Prints its address.
//   node floating.mjs '{"path":"…/bough.db"}'
// An input that begins with "call" calls the tool it names. On stdin: "late" lets the error of such a
// call float when it is over, "throw" and "reject" one of nobody's.

import { AsyncResource } from "node:async_hooks";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { defineTool } from "../../dist/index.js";
import { scriptedModel } from "../../dist/scripted/index.js";
import { createServer, serve } from "../../dist/server/index.js";
import { sqliteStore } from "../../dist/stores/sqlite/index.js";

const { path } = JSON.parse(process.argv[2]);
const input = { jsonSchema: { type: "object" } };
const never = (signal) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));

let throwLate;

function fail(message) {
  throw new Error(message);
}

const tools = {
  timer: defineTool({
    input,
    execute: (_, { signal }) => {
      setTimeout(fail, 1, "from a timer");
      return never(signal);
    },
  }),
  rejection: defineTool({
    input,
    execute: async (_, { signal }) => {
      await sleep(1);
      void sleep(1).then(() => Promise.reject(new Error("from a promise")));
      return never(signal);
    },
  }),
  // Throws when it is told to.
  late: defineTool({
    input,
    execute: () => {
      throwLate = AsyncResource.bind(() => setImmediate(fail, "too late"));
      return "done";
    },
  }),
  slow: defineTool({ input, execute: () => sleep(500).then(() => "slept") }),
};

function reply(prompt) {
  const last = prompt.at(-1);
  if (last.role === "tool") return "Done.";
  const [, name] = /^call (\w+)/.exec(last.content.map(({ text }) => text).join("")) ?? [];
  return name === undefined ? "Hello." : { calls: [{ name, input: {} }] };
}

const server = createServer({
  agents: { helper: { model: scriptedModel(reply), tools } },
  auth: (request) => ({ tenant: request.headers.get("x-tenant"), scopes: ["read", "write", "run"] }),
  store: await sqliteStore(path),
  logger: { warn: (...words) => console.error("warned:", ...words) },
});
const { url } = await serve(server, { port: 0 });
createInterface(process.stdin).on("line", (line) => {
  if (line === "late") throwLate();
  if (line === "throw") setTimeout(fail, 1, "of nobody's");
  if (line === "reject") void Promise.reject(new Error("of nobody's"));
});
console.log(url);
