// The process of one server, or of an agent without one: does what servers.mjs asks for.

import diagnostics from "node:diagnostics_channel";
import { createServer as createHttpServer } from "node:http";
import { createAgent } from "../../../dist/index.js";
import { createServer, serve } from "../../../dist/server/index.js";
import { sqliteStore } from "../../../dist/stores/sqlite/index.js";
import { answerCalls } from "../../lib/child.mjs";
import { ask, model, nextTurn } from "./model.mjs";

const branchId = "main";
/** The measured requests come faster than one tenant may send them; all other limits are the defaults. */
const limits = { requestsPerSecond: 1e6, burst: 1e6 };

const sockets = new Set();
diagnostics.subscribe("http.server.request.start", ({ socket }) => {
  sockets.add(socket);
  socket.once("close", () => sockets.delete(socket));
});

let agent;

const methods = {
  /** Bough's server as its guide begins. */
  async serveBough({ database, token }) {
    const store = await sqliteStore(database);
    const server = createServer({ agents: { helper: { model: model() } }, store, token, limits });
    return { port: (await serve(server, { port: 0 })).port };
  },

  /** Node's server and nothing else. A GET is a subscriber; a POST writes the events of its body to all of them. */
  async serveBare() {
    const subscribers = new Set();
    const http = createHttpServer(async (request, response) => {
      if (request.method === "GET") return subscribe(subscribers, response);
      let body = "";
      for await (const piece of request.setEncoding("utf8")) body += piece;
      response.writeHead(202).end();
      await fanOut(JSON.parse(body), subscribers);
    });
    await new Promise((resolve) => http.listen(0, "127.0.0.1", resolve));
    return { port: http.address().port };
  },

  /** An agent with a store, and no server. */
  async openAgent({ database }) {
    agent = createAgent({ model: model(), store: await sqliteStore(database) });
  },

  async createSession({ sessionId }) {
    await agent.createSession(sessionId);
  },

  /** How long a run takes to its first delta, in milliseconds; the rest of it is waited for. */
  async firstDelta({ sessionId, asked }) {
    let took;
    const from = performance.now();
    for await (const { type } of agent.run(ask(asked), { sessionId, branchId })) {
      if (type === "text-delta") took ??= performance.now() - from;
    }
    return took;
  },

  /** Milliseconds that this process had a processor. */
  async processor() {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  },

  /** What is left after collecting garbage, or, with `now`, what there is. */
  async memory({ now = false }) {
    for (let i = 0; i < 4 && !now; i++) {
      globalThis.gc();
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    const { rss, heapUsed, external } = process.memoryUsage();
    return { rss, used: heapUsed + external };
  },

  /** How many connections there are, and on how many the system takes nothing more. */
  async connections() {
    return { open: sockets.size, stalled: [...sockets].filter((each) => each.writableNeedDrain).length };
  },
};

function subscribe(subscribers, response) {
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store" });
  response.write('data: {"type":"ready","seq":0}\n\n');
  subscribers.add(response);
  response.on("close", () => subscribers.delete(response));
}

async function fanOut(events, subscribers) {
  const encoded = events.map((event) => Buffer.from(event));
  for (const event of encoded) {
    await nextTurn();
    for (const response of subscribers) response.write(event);
  }
}

answerCalls(methods);
