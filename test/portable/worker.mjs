// A whole server as a worker's module: what the tests bundle, and run in Node and in workerd. Durable Objects are given one
// instance for each name, which all requests share, as the memory store needs it.

import { scriptedModel } from "bough/scripted";
import { createServer } from "bough/server";
import { memoryStore } from "bough/stores/memory";

const texts = {
  name: "texts",
  path: "/texts",
  routes: [
    {
      name: "send",
      method: "POST",
      path: "/:sessionId",
      scope: "run",
      async handle({ params, json, tenant }) {
        const place = { agentId: "helper", sessionId: params.sessionId, branchId: "main" };
        const frames = await tenant.watch(place);
        await tenant.submitInput(place, await json());
        return { events: textsOf(frames) };
      },
    },
  ],
};

async function* textsOf(frames) {
  for await (const { type, event } of frames) {
    if (type === "event" && event.type === "text-delta") yield { data: event.text };
    if (type === "event" && event.type === "run-end") return;
  }
}

export class Bough {
  #server;

  constructor() {
    this.#server = createServer({
      agents: { helper: { model: scriptedModel(() => "Hello there.") } },
      store: memoryStore(),
      token: "a-token-for-the-tests",
      hosts: ["*"],
      mounts: [texts],
      assets: { files: { "index.html": "<p>App</p>", "app.js": "1" } },
    });
  }

  fetch(request) {
    return this.#server.fetch(request);
  }
}

export default {
  fetch: (request, env) => env.BOUGH.get(env.BOUGH.idFromName("one")).fetch(request),
};
