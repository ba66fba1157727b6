// bough workflow draw: a graph of a file, of a server, and an execution in a store.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createWorkflow, graph } from "../../src/workflows/index.ts";
import { given, say } from "../server/kit.ts";
import { checkMermaid } from "../workflows/mermaid-grammar.ts";
import { bough, scratch } from "./kit.ts";

const json = {
  name: "desk",
  nodes: {
    look: { run: { function: "look" } },
    inner: { workflow: "inner" },
    helper: { agent: "helper", prompt: "{{outputs.look}}" },
  },
  edges: [
    { from: "start", to: "look" },
    { from: "look", to: "inner", when: { matches: { function: "never" } } },
    { from: "look", to: "helper", when: "otherwise" },
  ],
};

function folderWithGraph(): string {
  const folder = scratch();
  writeFileSync(join(folder, "desk.json"), JSON.stringify(json));
  writeFileSync(join(folder, "broken.json"), JSON.stringify({ ...json, edges: [["look", "gone"]] }));
  return folder;
}

describe("bough workflow draw", () => {
  test("draws the JSON of a graph, whatever stands in it by name, and refuses what is none", async () => {
    const folder = folderWithGraph();
    const { code, stdout } = await bough(folder, "workflow", "draw", "desk.json");
    expect(code).toBe(0);
    expect(checkMermaid(stdout)).toEqual([]);
    expect(stdout).toContain('n1[["inner"]]');
    const broken = await bough(folder, "workflow", "draw", "broken.json");
    expect(broken).toMatchObject({ code: 2 });
    expect(broken.stderr).toContain('there is no node "gone"');
    expect((await bough(folder, "workflow", "draw")).stderr).toContain("Name a file with the JSON of a graph");
    expect((await bough(folder, "workflow", "draw", "gone.json")).stderr).toContain("gone.json can't be read");
  });

  test("draws an execution in a store: its graph with states, or its steps alone", async () => {
    const folder = folderWithGraph();
    const nodes = { look: { run: () => "tree" }, helper: { run: () => "done" } };
    const runner = createWorkflow(graph("desk", { nodes, edges: [["look", "helper"]] }), {
      store: `sqlite:${join(folder, "bough.db")}`,
    });
    await runner.run("go", { executionId: "x" }).result;
    await runner.close();
    const execution = ["--session", "workflow-desk-x", "--store", "sqlite:./bough.db"];
    const { stdout } = await bough(folder, "workflow", "draw", "desk.json", ...execution);
    expect(stdout).toContain("class n0 done");
    expect(stdout).toContain("class n1 waiting");
    const steps = await bough(folder, "workflow", "draw", ...execution);
    expect(checkMermaid(steps.stdout)).toEqual([]);
    expect(steps.stdout).toContain('s0["look"]');
  });

  test("draws a stored graph of a server", async () => {
    const g = await given(() => "Helped.", {
      definitions: {
        functions: { look: () => "x", never: /(?!)/ },
        workflows: { inner: graph("inner", { nodes: { a: { run: () => 1 } }, edges: [] }) },
      },
    });
    await g.ask("POST", "/agents", { agentId: "desk", graph: json });
    await say(g, "Hi", "/agents/desk/sessions/s/branches/main");
    const words = ["workflow", "draw", "desk", "--url", g.serving.url, "--token", g.server.token!, "--session", "s"];
    const { stdout } = await bough(scratch(), ...words);
    expect(checkMermaid(stdout)).toEqual([]);
    expect(stdout).toContain("class n2 done");
  });
});
