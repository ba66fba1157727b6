// Own events between processes: one that is killed, the command that exports and imports, a node without the definition.

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { createClient } from "../../src/client/index.ts";
import { createAgent, defineEvent, defineTool } from "../../src/index.ts";
import { scriptedModel } from "../../src/scripted/index.ts";
import { sqliteStore } from "../../src/stores/sqlite/index.ts";
import { bough } from "../cli/kit.ts";
import { given, quiet, scope, until } from "../server/kit.ts";

const script = fileURLToPath(new URL("./ordering.mjs", import.meta.url));
const built = fileURLToPath(new URL("../../dist/index.js", import.meta.url));
const orderPlaced = defineEvent({ type: "order.placed", kept: true, schema: z.object({ total: z.number() }) });

function scratch(): string {
  const folder = mkdtempSync(join(tmpdir(), "bough-own-events-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Starts a process, lets it emit its event, and kills it before its tool has a result. */
async function killedAfterEmitting(url: string): Promise<void> {
  if (!existsSync(built)) throw new Error("These tests run the built package: npm run build first.");
  const child: ChildProcess = spawn(process.execPath, [script, url], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const { value } = await createInterface({ input: child.stdout! })[Symbol.asyncIterator]().next();
  expect(value).toBe("durable");
  const gone = new Promise<NodeJS.Signals | null>((resolve) => child.once("close", (_code, signal) => resolve(signal)));
  child.kill("SIGKILL");
  expect(await gone).toBe("SIGKILL");
}

/** The agent of the killed process, whose tool now comes to its end. */
function shop(store: string) {
  const order = defineTool({
    input: z.object({ total: z.number() }),
    async execute({ total }, context) {
      await context.emit(orderPlaced, { total });
      return "ordered";
    },
  });
  const model = scriptedModel(["Done."]);
  const agent = createAgent({ id: "shop", model, tools: { order }, events: [orderPlaced], store });
  onTestFinished(() => agent.close());
  return agent;
}

const isPlaced = ({ type }: { type: string }) => type === "order.placed" || type === "unknown:order.placed";

test.each(["sqlite", "file"])(
  "%s: an event of a killed process is in the log, and the resumed call does not emit it again",
  async (kind) => {
    const folder = scratch();
    const url = kind === "sqlite" ? `sqlite:${folder}/bough.db` : `file:${folder}/sessions`;
    await killedAfterEmitting(url);
    const agent = shop(url);
    const before = await agent.events("s");
    expect(before.filter(isPlaced)).toMatchObject([{ type: "order.placed", data: { total: 12 } }]);
    expect(before.some(({ type }) => type === "tool.returned")).toBe(false);
    const [left] = await agent.recover();
    expect(await left!.run!.text()).toBe("Done.");
    const after = await agent.events("s");
    expect(after.filter(isPlaced)).toEqual(before.filter(isPlaced));
    expect(after.filter(({ type }) => type === "tool.returned")).toHaveLength(1);
  },
);

test("a fork sees them, a revert hides none, and export and import keep them as they are", async () => {
  const cwd = scratch();
  const url = `sqlite:${cwd}/a.db`;
  await killedAfterEmitting(url);
  const agent = shop(url);
  await (await agent.recover())[0]!.run!.text();
  const placed = (await agent.events("s")).filter(isPlaced);
  await agent.branch("s").fork({ newBranchId: "f" });
  await agent.branch("s").undo();
  expect((await agent.loadBranch({ sessionId: "s", branchId: "main" })).messages).toEqual([]);
  const onMain = { sessionId: "s", branchId: "main" };
  const onFork = { sessionId: "s", branchId: "f" };
  expect((await agent.events(onMain)).filter(isPlaced)).toEqual(placed);
  expect((await agent.events(onFork)).filter(isPlaced)).toEqual(placed);
  await agent.close();

  expect(await bough(cwd, "sessions", "export", "s", "--store", url, "-o", "s.jsonl")).toMatchObject({ code: 0 });
  const imported = await bough(cwd, "sessions", "import", "s.jsonl", "--store", "sqlite:b.db");
  expect(imported).toMatchObject({ code: 0 });
  const copy = shop(`sqlite:${cwd}/b.db`);
  expect((await copy.events(onMain)).filter(isPlaced)).toEqual(placed);
  expect((await copy.events(onFork)).filter(isPlaced)).toEqual(placed);
  expect((await copy.loadBranch(onFork)).messages.at(-1)).toMatchObject({ role: "assistant" });
});

test("a node without the definition takes the turn up and serves the branch", async () => {
  const path = join(scratch(), "bough.db");
  await killedAfterEmitting(`sqlite:${path}`);
  const order = defineTool({ input: z.object({ total: z.number() }), execute: () => "ordered elsewhere" });
  const agents = { shop: { model: scriptedModel(["Done."]), tools: { order }, logger: quiet } };
  const g = await given([], { agents, store: await sqliteStore(path), isSecond: true });
  const branch = scope.replace("helper", "shop");
  const state = await until(async () => {
    const { body } = await g.ask("GET", `${branch}/state`);
    return body.openTurn === undefined && body;
  });
  expect(state.messages.at(-1)).toMatchObject({ role: "assistant", content: [{ text: "Done." }] });
  const { body } = await g.ask("GET", "/sessions/s/branches/main/events");
  expect(body.events.filter(isPlaced)).toMatchObject([
    { type: "unknown:order.placed", payload: { data: { total: 12 } } },
  ]);
  const client = createClient({ url: g.serving.url, token: g.server.token!, agentId: "shop" });
  const seen: string[] = [];
  for await (const { type } of client.branch("s").watch()) {
    seen.push(type);
    if (type === "turn.committed") break;
  }
  expect(seen.filter((type) => isPlaced({ type }))).toEqual(["unknown:order.placed"]);
});
