import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createAgent } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "bough-lazy-agent-"));
});
afterAll(() => rm(directory, { recursive: true }));

const model = scriptedModel(() => "hello");

test("an agent opens its store when it is used, and not before", async () => {
  const path = join(directory, "used.db");
  const agent = createAgent({ model, store: `sqlite:${path}` });
  agent.subscribe("*", () => {});
  expect(await agent.run("stores nothing").text()).toBe("hello");
  expect(existsSync(path)).toBe(false);
  await agent.createSession("s");
  expect(existsSync(path)).toBe(true);
  await agent.close();
});

test("an agent that was never used closes without a trace, also twice", async () => {
  const path = join(directory, "unused.db");
  const agent = createAgent({ model, store: `sqlite:${path}` });
  await agent.close();
  await agent.close();
  expect(existsSync(path)).toBe(false);
  await expect(agent.createSession("s")).rejects.toMatchObject({ code: "store_closed" });
});

test("what is wrong with the store reaches whoever uses the agent, through every door", async () => {
  const path = join(directory, "no-database");
  await writeFile(path, "this is no database, and long enough to be sure of that ".repeat(100));
  const agent = createAgent({ model, store: `sqlite:${path}` });
  const run = agent.run("hi", { sessionId: "s" });
  await expect(async () => {
    for await (const _ of run);
  }).rejects.toMatchObject({ name: "BoughError" });
  await expect(run.result).rejects.toMatchObject({ name: "BoughError" });
  await expect(agent.createSession("s")).rejects.toMatchObject({ name: "BoughError" });
  await expect(agent.recover()).rejects.toMatchObject({ name: "BoughError" });
  await agent.close();
  for (const store of ["mysql://host/db", "mongodb://host"]) {
    await expect(createAgent({ model, store }).createSession("s")).rejects.toMatchObject({ code: "store_unsupported" });
  }
});
