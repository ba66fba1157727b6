// Servers, each in a process of its own, and how they are asked.

import { Agent, request } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startChild } from "../../lib/child.mjs";
import { newPlace } from "../../lib/stores.mjs";

const program = fileURLToPath(new URL("./server-program.mjs", import.meta.url));
const token = "the-token-of-the-bench";

/**
 * Does the work with a process that can be called, and ends it. The part of its heap for what is new has its full size from
 * the start, or memory would show how fast connections came instead of what they keep.
 */
export async function withChild(name, work) {
  const flags = ["--expose-gc", "--min-semi-space-size=16", ...process.execArgv];
  const execArgv = ["--no-warnings", ...new Set(flags)];
  const child = startChild(program, { name, execArgv });
  try {
    return await work(child);
  } finally {
    await child.stop();
  }
}

/** Bough's server on a SQLite database of its own. */
export async function withBough({ dir }, work) {
  await withChild("Bough", async ({ call }) => {
    const database = join(await newPlace(dir, "serve"), "bough.db");
    const { port } = await call("serveBough", { database, token });
    await work(new Served(port, call));
  });
}

export async function withBare(work) {
  await withChild("node:http", async ({ call }) => {
    const { port } = await call("serveBare");
    await work(new Served(port, call));
  });
}

const agent = new Agent({ keepAlive: true });

/** A server that is asked over HTTP, and its process. */
class Served {
  constructor(port, call) {
    this.port = port;
    this.call = call;
  }

  headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };

  async createSession(sessionId) {
    await this.post("/sessions", JSON.stringify({ sessionId }), 201);
  }

  /** Gives an input to a session. */
  async submit(sessionId, input) {
    await this.post(`${scopeOf(sessionId)}/inputs`, JSON.stringify({ input }), 202);
  }

  /** Resolves when it is answered. */
  post(path, body, expected) {
    const options = { host: "127.0.0.1", port: this.port, path, method: "POST", headers: this.headers, agent };
    return new Promise((resolve, reject) => {
      const sent = request(options, (answer) => {
        answer.resume();
        if (answer.statusCode !== expected) reject(new Error(`${path} was answered with ${answer.statusCode}`));
        else answer.on("end", resolve);
      });
      sent.on("error", reject);
      sent.end(body);
    });
  }
}

/** Where the live events of a session are. */
export function liveOf(sessionId) {
  return `${scopeOf(sessionId)}/events/live`;
}

function scopeOf(sessionId) {
  return `/agents/helper/sessions/${sessionId}/branches/main`;
}
