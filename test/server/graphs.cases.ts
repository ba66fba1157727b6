// Stored graphs: kept like stored agents, run like agents, drawn with what became of their nodes. On one store.

import { describe, expect, test } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { scriptedModel } from "../../src/scripted/index.ts";
import { expectProblem, type Given, given, type OpenStore, say, scope, settled } from "./kit.ts";

const agents = "/agents";
const desk = {
  name: "desk",
  nodes: {
    look: { run: { function: "look" } },
    helper: { agent: "helper", prompt: "Help with {{outputs.look.topic}}." },
    other: { agent: "stored", prompt: "{{input}}" },
  },
  edges: [
    ["start", "look"],
    { from: "look", to: "helper", when: { field: "topic", matches: { function: "isTree" } } },
    ["look", "other", "otherwise"],
  ],
};
const functions = {
  look: ({ input }: { input: unknown }) => ({ topic: String(input).split(" ").at(-1)! }),
  isTree: /^(oak|pine)$/,
};
const models = { "scripted/a": scriptedModel(() => "From the stored one.") };
const on = "/agents/desk/sessions/s/branches/main";

export function describeGraphs(open: OpenStore): void {
  const start = (options: object = {}) =>
    given(() => "From the helper.", { open, definitions: { models, functions }, ...options });
  const said = async ({ ask }: Given, of = on) =>
    (await ask("GET", `${of}/state`)).body.messages.at(-1).content[0].text as string;

  test("8.7 a graph is stored, listed, changed and deleted like an agent, in the same ids", async () => {
    const { ask } = await start();
    const created = await ask("POST", agents, { agentId: "desk", name: "Desk", graph: desk, metadata: { k: 1 } });
    expect(created).toMatchObject({
      status: 201,
      body: { id: "desk", source: "stored", kind: "workflow", graph: desk },
    });
    expectProblem(await ask("POST", agents, { agentId: "desk", graph: desk }), 409, "agent_exists");
    const { agents: list } = (await ask("GET", agents)).body;
    expect(list).toContainEqual(expect.objectContaining({ id: "desk", kind: "workflow", name: "Desk" }));
    expect(JSON.stringify(list)).not.toContain("isTree");
    const other = { ...desk, description: "Another one." };
    expect((await ask("PUT", `${agents}/desk`, { graph: other })).body).toMatchObject({ graph: other, name: "Desk" });
    expect((await ask("GET", `${agents}/desk`)).body.graph).toEqual(other);
    const config = { model: "scripted/a" };
    expect((await ask("PUT", `${agents}/desk`, { config })).body).toMatchObject({ config });
    expect((await ask("GET", `${agents}/desk`)).body).not.toHaveProperty("graph");
    expect((await ask("DELETE", `${agents}/desk`)).status).toBe(204);
    expectProblem(await ask("GET", `${agents}/desk/graph`), 404, "agent_not_found");
  });

  describe("8.8 a graph that could never run is refused", () => {
    test.each<[string, object, string]>([
      ["a node that is not there", { ...desk, edges: [["look", "gone"]] }, 'there is no node "gone"'],
      [
        "a function of nobody's",
        { ...desk, nodes: { a: { run: { function: "constructor" } } }, edges: [] },
        "constructor",
      ],
      ["a pattern in words", { ...desk, edges: [["look", "helper", { matches: "^(a+)+$" }]] }, "RegExp given in code"],
      [
        "a key that JSON can't be trusted with",
        { ...desk, nodes: { a: { agent: "x", router: { to: JSON.parse('{"__proto__":"x"}') } } } },
        "__proto__",
      ],
      ["an unknown key", { ...desk, script: "1" }, 'may not have the key "script"'],
    ])("%s", async (_what, graph, words) => {
      const { ask } = await start();
      const refused = await ask("POST", agents, { graph });
      expectProblem(refused, 400, "invalid_argument");
      expect(refused.body.detail).toContain(words);
    });

    test("one that is too large, or none at all, or an agent at the same time", async () => {
      const { ask } = await start();
      const nodes = Object.fromEntries(
        Array.from({ length: 90 }, (_, i) => [`n${i}`, { agent: "x", prompt: "x".repeat(700) }]),
      );
      expectProblem(await ask("POST", agents, { graph: { name: "big", nodes, edges: [] } }), 413, "limit_exceeded");
      expectProblem(await ask("POST", agents, {}), 400, "invalid_argument");
      expectProblem(
        await ask("POST", agents, { graph: desk, config: { model: "scripted/a" } }),
        400,
        "invalid_argument",
      );
    });
  });

  test("8.9 it runs like an agent, with the agents of its tenant, and a change is for the next execution", async () => {
    const g = await start();
    await g.ask("POST", agents, { agentId: "stored", config: { model: "scripted/a" } });
    await g.ask("POST", agents, { agentId: "desk", graph: desk });
    await say(g, "Tell me of the oak", on);
    expect(await said(g)).toBe("From the helper.");
    await say(g, "Tell me of bread", on);
    expect(await said(g)).toBe("From the stored one.");
    const edges = [
      ["start", "look"],
      ["look", ["helper", "other"]],
      ["helper", "end"],
    ];
    expect((await g.ask("PUT", `${agents}/desk`, { graph: { ...desk, edges } })).status).toBe(200);
    await say(g, "Tell me of bread", on);
    expect(await said(g)).toBe("From the helper.");
    expectProblem(
      await g.ask("POST", `${scope.replace("helper", "gone")}/inputs`, { input: "Hi" }),
      404,
      "agent_not_found",
    );
  });

  test("8.10 its graph is JSON or a drawing, of an execution with the states of its nodes", async () => {
    const g = await start();
    const { ask, server, serving } = g;
    await ask("POST", agents, { agentId: "desk", graph: desk });
    await say(g, "Tell me of the oak", on);
    await settled(g, on);
    const { graph: read, steps } = (await ask("GET", `${agents}/desk/graph?sessionId=s`)).body;
    expect(read).toMatchObject({ name: "desk", nodes: desk.nodes });
    const states = steps.map(({ key, status }: { key: string; status: string }) => `${key} ${status}`);
    expect(states.sort()).toEqual(["helper returned", "look returned", "other skipped"]);
    expectProblem(await ask("GET", `${agents}/helper/graph`), 400, "invalid_argument");
    expectProblem(await ask("GET", `${agents}/desk/graph?format=svg`), 400, "invalid_argument");
    const client = createClient({ url: serving.url, token: server.token });
    expect((await client.getGraph("desk")).graph).toMatchObject({ name: "desk" });
    const drawn = await client.drawGraph("desk", { sessionId: "s" });
    expect(drawn).toContain("flowchart TD");
    expect(drawn).toContain("class n1 done");
    expect(drawn).toContain("class n2 skipped");
  });
}
