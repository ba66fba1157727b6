import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { createAgent } from "../../src/index.ts";
import { factsOf, openQuestions, removesThenTells, removing, s } from "./asking-kit.ts";

const script = fileURLToPath(new URL("./waiting.mjs", import.meta.url));
const built = fileURLToPath(new URL("../../dist/index.js", import.meta.url));

interface Line {
  readonly asked?: string;
  readonly ran?: string;
  readonly status?: string;
}

/** A process of its own that waits for a person, and what it says. */
async function waitingProcess(): Promise<{ path: string; child: ChildProcess; lines: Line[]; said(): Promise<Line> }> {
  if (!existsSync(built)) throw new Error("These tests run the built package: npm run build first.");
  const directory = await mkdtemp(join(tmpdir(), "bough-waiting-"));
  const path = join(directory, "bough.db");
  const child = spawn(process.execPath, [script, path], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await rm(directory, { recursive: true });
  });
  const lines: Line[] = [];
  const reading = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  const said = async () => {
    const { value, done } = await reading.next();
    if (done) throw new Error("The process ended without saying more.");
    lines.push(JSON.parse(value));
    return lines.at(-1)!;
  };
  return { path, child, lines, said };
}

async function killed(child: ChildProcess): Promise<void> {
  const gone = new Promise((resolve) => child.once("close", resolve));
  child.kill("SIGKILL");
  await gone;
}

test("an answer from this process reaches the one that waits", async () => {
  const { path, said } = await waitingProcess();
  const { asked } = await said();
  const agent = createAgent({ model: removesThenTells("x"), store: `sqlite:${path}` });
  onTestFinished(() => agent.close());
  expect(await agent.respond(s, asked!, { approved: true })).toBeUndefined();
  expect(await said()).toEqual({ ran: "x" });
  expect(await said()).toEqual({ status: "completed" });
});

test("a process killed while it waits leaves its question under its id, and the answer resumes the turn once", async () => {
  const { path, child, said } = await waitingProcess();
  const { asked } = await said();
  await killed(child);
  const { ran, tools } = removing();
  const agent = createAgent({ model: removesThenTells("x"), tools, store: `sqlite:${path}` });
  onTestFinished(() => agent.close());
  expect(await openQuestions(agent)).toMatchObject([{ id: asked, request: { input: { path: "x" } } }]);
  const [left] = await agent.recover();
  expect(left!.run).toBeUndefined();
  expect(left!.waitingFor.map(({ id }) => id)).toEqual([asked]);
  const run = await agent.respond(s, asked!, { approved: true });
  expect((await run!.result).status).toBe("completed");
  expect(ran).toEqual(["x"]);
  expect(await factsOf(agent, "interaction.opened")).toHaveLength(1);
  expect(await factsOf(agent, "turn.resumed")).toHaveLength(1);
});

test("a question of a killed process that is answered before anybody resumes is not asked again", async () => {
  const { path, child, said } = await waitingProcess();
  const { asked } = await said();
  await killed(child);
  const { ran, tools } = removing();
  const agent = createAgent({ model: removesThenTells("x"), tools, store: `sqlite:${path}` });
  onTestFinished(() => agent.close());
  await agent.answer(s, asked!, { approved: false, reason: "Not now." });
  const [left] = await agent.recover();
  expect(JSON.parse(await left!.run!.text())).toEqual([{ type: "execution-denied", reason: "Not now." }]);
  expect(ran).toEqual([]);
  expect(await factsOf(agent, "interaction.opened")).toHaveLength(1);
});
