import { expect, test } from "vitest";
import { createAgent, subagent } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { bough, inStore, scratch } from "./kit.ts";

test("bough tasks lists the tasks of a branch and ends one; a turn does not begin about it", async () => {
  const cwd = scratch();
  const url = `sqlite:${cwd}/bough.db`;
  await inStore(url, async (store) => {
    const child = createAgent({ name: "child", model: scriptedModel(() => new Promise<never>(() => {})) });
    const review = subagent(child, { description: "Reviews.", permission: false, mode: "background" });
    const model = scriptedModel([{ calls: [{ name: "review", input: { input: "Go." } }] }, "Started."]);
    const agent = createAgent({ id: "boss", model, tools: { review }, store });
    await agent.createSession("s");
    await agent.run("Go.", "s").result;
    await agent.close();
  });
  const tasks = (...words: string[]) => bough(cwd, "tasks", ...words, "--store", url);
  const [task] = JSON.parse((await tasks("ls", "s", "--json")).stdout).tasks;
  expect((await tasks("ls", "s")).stdout).toMatch(/^ID +NAME +STATUS +SINCE +BRANCH\ntask-\S+ +review +running/);
  expect((await tasks("cancel", "s", task.taskId)).code).toBe(0);
  expect((await tasks("ls", "s")).stdout).toBe("No background task goes on.\n");
  expect((await tasks("cancel", "s", task.taskId)).stderr).toContain("(task_ended)");
  expect((await tasks("cancel", "s", "task-0")).stderr).toContain("(task_not_found)");
});
