// Tenants of a server: one tenant's page costs a page, and tenants with nothing to do cost nothing.

import { scriptedModel } from "bough/scripted";
import { createServer } from "bough/server";
import { cpuOf, eachOf, growth, onStores, sizesOf, sleep } from "../lib/growth.mjs";

export async function run(context) {
  const sizes = sizesOf(context, 10);
  await onStores(context, ({ kind, open }) =>
    growth(context, {
      kind,
      sizes,
      alone: true,
      rounds: 4,
      promises: { "CPU of an idle second": "flat", "a page of a tenant's sessions": "flat" },
      async at(n) {
        const store = await open();
        const agents = { helper: { model: scriptedModel([]) } };
        const auth = (request) => ({
          tenant: request.headers.get("authorization").slice(7),
          userId: "u",
          scopes: ["read", "write"],
        });
        const server = createServer({ store, agents, auth });
        const ask = (tenant, path, init = {}) => {
          const headers = { authorization: `Bearer ${tenant}`, "content-type": "application/json" };
          return server.fetch(new Request(`http://localhost${path}`, { ...init, headers }));
        };
        const answered = async (response) => {
          if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
          await response.text();
        };
        await eachOf(n, async (i) => {
          const body = JSON.stringify({ sessionId: "s" });
          await answered(await ask(`tenant-${i}`, "/sessions", { method: "POST", body }));
        });
        await sleep(500);
        return {
          costs: {
            "CPU of an idle second": () => cpuOf(() => sleep(2000)).then((ms) => ms / 2),
            "a page of a tenant's sessions": async () => answered(await ask(`tenant-${n >> 1}`, "/sessions")),
          },
          async close() {
            await server.close();
            await store.close();
          },
        };
      },
    }),
  );
}
