// What a client may say of how its run goes, on one store, and what a turn keeps of how it was asked.

import { expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../src/index.ts";
import { scriptedModel } from "../../src/scripted/index.ts";
import { apiKeys, hashApiKey } from "../../src/server/index.ts";
import { expectProblem, given, type OpenStore, scope, settled, until } from "./kit.ts";

const main = "/sessions/s/branches/main";

/** A guarded tool, and how often it ran. */
function wiping() {
  const ran: string[] = [];
  const wipe = defineTool({
    description: "Wipes.",
    input: z.object({ path: z.string() }),
    permission: true,
    execute: ({ path }) => {
      ran.push(path);
      return "wiped";
    },
  });
  return { ran, tools: { wipe } };
}

const wipes = [{ calls: [{ name: "wipe", input: { path: "/" } }] }, "Done."];

export function describeClientConfig(open: OpenStore): void {
  const start: typeof given = (script, options = {}) => given(script, { open, ...options });

  test("5.10 a client's permission mode can't loosen the agent's", async () => {
    const { ran, tools } = wiping();
    const g = await start(wipes, { agent: { tools, permissions: { mode: "deny" } } });
    await g.ask("POST", `${scope}/inputs`, { input: "Wipe", config: { permissionMode: "allow" } });
    await settled(g);
    expect(ran).toEqual([]);
  });

  test("5.10 a client's permission mode tightens the agent's", async () => {
    const { ran, tools } = wiping();
    const g = await start(wipes, { agent: { tools, permissions: { mode: "allow" } } });
    await g.ask("POST", `${scope}/inputs`, { input: "Wipe", config: { permissionMode: "deny" } });
    await settled(g);
    expect(ran).toEqual([]);
  });

  test("5.10 the server's program can let clients choose", async () => {
    const { ran, tools } = wiping();
    const options = { agent: { tools }, allowConfig: ["permissionMode", "addInstructions", "model"] } as const;
    const fast = scriptedModel(() => "Fast.");
    const g = await start(wipes, { ...options, agent: { ...options.agent, models: { fast } } });
    await g.ask("POST", `${scope}/inputs`, { input: "Wipe", config: { permissionMode: "allow" } });
    await settled(g);
    expect(ran).toEqual(["/"]);
    const config = { model: "fast", addInstructions: "Be brief." };
    expect((await g.ask("POST", `${scope}/inputs`, { input: "Hi", config })).status).toBe(202);
    await settled(g);
    expect(fast.calls[0]!.prompt[0]).toMatchObject({ role: "system", content: "Be brief." });
    const unknown = await g.ask("POST", `${scope}/inputs`, { input: "Hi", config: { model: "openai/gpt" } });
    expect(expectProblem(unknown, 400, "invalid_argument").detail).toContain("Available: fast");
  });

  test("5.10 a client's limits are bounds, never more than the agent's", async () => {
    const calls = () => ({ calls: [{ name: "none", input: {} }] });
    const g = await start(calls, { agent: { limits: { iterations: 3 } } });
    const iterations = async (limits: object) => {
      await g.ask("POST", `${scope}/inputs`, { input: "Go", config: { limits } });
      await settled(g);
      return (await g.ask("GET", `${main}/events?limit=1000`)).body.events.at(-1).iterations;
    };
    expect(await iterations({ iterations: 1000, turnMs: 1e9 })).toBe(3);
    expect(await iterations({ iterations: 2 })).toBe(2);
  });

  test("5.10 instructions and models of a client are refused, whatever its scopes", async () => {
    const g = await start(["One."]);
    for (const config of [{ instructions: "Obey." }, { addInstructions: "Obey." }, { model: "fast" }]) {
      const [key] = Object.keys(config);
      const refused = await g.ask("POST", `${scope}/inputs`, { input: "Hi", config });
      expect(expectProblem(refused, 403, "forbidden").detail).toContain(`config.${key}`);
    }
    expect((await g.ask("GET", `${scope}/state`)).body.seq).toBe(1);
  });

  test("5.13 a turn keeps how it was asked and by whom, and its tools see that", async () => {
    const seen: unknown[] = [];
    const whoami = defineTool({
      input: z.object({}),
      execute: async (_input, { context, identity, by, metadata, sessionMetadata }) => {
        seen.push({ context, identity, by, metadata, session: await sessionMetadata() });
        return "you";
      },
    });
    const keys = new Map([
      [hashApiKey("key-of-ada-0123456"), { tenant: "acme", user: "ada", scopes: ["read", "write", "run"] }],
    ]);
    const g = await start([{ calls: [{ name: "whoami", input: {} }] }, "You."], {
      agent: { tools: { whoami }, context: z.object({ plan: z.string() }) },
      auth: apiKeys((hash) => keys.get(hash) as never),
    });
    const headers = { authorization: "Bearer key-of-ada-0123456" };
    await g.ask("POST", "/sessions", { sessionId: "s", metadata: { team: "red" } }, headers);
    const submit = (body: object) => g.ask("POST", `${scope}/inputs`, body, headers);
    const unfit = await submit({ input: "Who?", context: { plan: 1 } });
    expect(expectProblem(unfit, 400, "invalid_argument").detail).toContain("context.plan");
    expect((await submit({ input: "Who?", context: { plan: "pro" }, metadata: { from: "test" } })).body).toMatchObject({
      status: "started",
    });
    await until(async () => (await g.ask("GET", `${scope}/state`, undefined, headers)).body.openTurn === undefined);
    const identity = { tenant: "acme", user: "ada", scopes: ["read", "write", "run"] };
    expect(seen).toEqual([
      { context: { plan: "pro" }, identity, by: "ada", metadata: { from: "test" }, session: { team: "red" } },
    ]);
    const { events } = (await g.ask("GET", `${main}/events`, undefined, headers)).body;
    const started = events.find(({ type }: { type: string }) => type === "turn.started");
    expect(started).toMatchObject({ by: "ada", request: { context: { plan: "pro" }, identity } });
  });

  test("5.14 an output schema is JSON Schema, and the answer has to fit", async () => {
    const g = await start(['{"sum":"three"}', '{"sum":3}']);
    const schema = { type: "object", properties: { sum: { type: "number" } }, required: ["sum"] };
    await g.ask("POST", `${scope}/inputs`, { input: "1 and 2?", output: { schema } });
    await settled(g);
    const { messages } = (await g.ask("GET", `${scope}/state`)).body;
    expect(messages.at(-1).content).toEqual([{ type: "text", text: '{"sum":3}' }]);
    expect(messages).toHaveLength(4);
  });
}
