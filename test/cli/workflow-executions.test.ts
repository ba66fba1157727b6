// bough workflow ls, show and signal: executions in a store and on a server.

import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { createAgent } from "../../src/index.ts";
import { createServer, serve } from "../../src/server/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { createWorkflow, workflow } from "../../src/workflows/index.ts";
import { bough, scratch } from "./kit.ts";

const night = 8 * 3_600_000;
const reader = createAgent({ name: "reader", model: scriptedModel(() => "Read."), telemetry: false });

const order = workflow("order", { conversation: "perNode" }, async (flow, input: string) => {
  await flow.agent("read", reader, input);
  if (input === "bad") await flow.step("price", () => Promise.reject(new Error("No price is known.")));
  if (input === "sleepy") await flow.sleep("night", night);
  if (input === "asking") await flow.ask("buy");
  const paid = await flow.wait("paid");
  return { paid };
});

function openOrder(store: string) {
  return createWorkflow(order, { store, telemetry: false, logger: { warn: () => {} } });
}

/** A store with executions: asleep until a time and without one, waiting for a person, failed and ended. */
async function filled() {
  const folder = scratch();
  const store = `sqlite:${join(folder, "bough.db")}`;
  const runner = openOrder(store);
  for (const input of ["sleepy", "asking", "paying", "bad"]) await runner.run(input, { executionId: input }).result;
  await runner.run("done", { executionId: "done" }).result;
  const run = await runner.signal(runner.scope("done"), { name: "paid", payload: 1 });
  expect((await run!.result).output).toEqual({ paid: 1 });
  await runner.createSession("other");
  await runner.close();
  return { folder, store };
}

const places = {
  "a store": async () => {
    const { folder, store } = await filled();
    return { folder, store, where: ["--store", store], later: async () => {} };
  },
  "a server": async () => {
    const { folder, store } = await filled();
    const server = createServer({ agents: { order }, store, logger: { warn: () => {} } });
    const serving = await serve(server, { port: 0 });
    let isClosed = false;
    const later = async () => {
      if (!isClosed) await serving.close();
      isClosed = true;
    };
    onTestFinished(later);
    return { folder, store, where: ["--url", serving.url, "--token", server.token!], later };
  },
};

describe.each(Object.entries(places))("on %s", (name, open) => {
  test("executions are listed with what they do, shown step by step, and signalled", async () => {
    const { folder, store, where, later } = await open();
    const run = (...words: string[]) => bough(folder, "workflow", ...words, ...where);

    const list = await run("ls", "--json");
    expect(list).toMatchObject({ code: 0, stderr: "" });
    const { executions } = JSON.parse(list.stdout);
    const states = executions.map((each: { executionId: string; state: string }) => [each.executionId, each.state]);
    expect(Object.fromEntries(states)).toEqual({
      ...{ sleepy: "asleep", asking: "waiting", paying: "asleep", bad: "failed", done: "ended" },
    });
    expect((await run("ls")).stdout).toMatch(/sleepy +order +asleep .* workflow-order-sleepy/);
    expect((await run("ls", "--workflow", "none")).stderr).toBe("No executions.\n");
    const page = await run("ls", "--limit", "2");
    expect(page.stdout.trim().split("\n")).toHaveLength(3);
    expect(page.stderr).toContain("More: add --cursor");

    const sleepy = await run("show", "sleepy");
    expect(sleepy.stderr).toMatch(/workflow-order-sleepy, branch main: asleep, until \d{4}-/);
    expect(sleepy.stdout).toMatch(/read +agent +returned .* workflow-agent-sleepy-read/);
    expect(sleepy.stdout).toMatch(/night +sleep +started .*sleeps until \d{4}-/);
    expect((await run("show", "asking")).stdout).toMatch(/buy +ask +started .*waits for the answer to \S+/);
    const bad = await run("show", "bad");
    expect(bad.stderr).toBe("workflow-order-bad, branch main: failed\n");
    expect(bad.stdout).toMatch(/price +step +failed .*No price is known\./);
    const paying = await run("show", "workflow-order-paying");
    expect(paying.stderr).toContain("asleep, until it gets a signal or an answer");
    const done = JSON.parse((await run("show", "done", "--json")).stdout);
    expect(done).toMatchObject({ state: "ended", sessionId: "workflow-order-done", branchId: "main" });
    expect(done.steps).toMatchObject([
      { key: "read", kind: "agent", status: "returned", child: { branchId: "workflow-agent-done-read" } },
      { key: "paid", kind: "wait", status: "returned" },
    ]);

    const sent = await run("signal", "paying", "paid", '{"amount":20}', "--id", "payment-1");
    expect(sent).toMatchObject({ code: 0, stdout: "payment-1\n" });
    expect(sent.stderr.includes("A process that runs the workflow goes on")).toBe(name === "a store");
    const again = await run("signal", "paying", "paid", "--id", "payment-1");
    // On a server, the execution has gone on, and may have ended.
    if (name === "a store") expect(again).toMatchObject({ code: 0, stdout: "payment-1\n" });

    await later();
    const runner = openOrder(store);
    const left = await runner.recover({ sessionId: "workflow-order-paying" });
    await Promise.all(left.map((each) => each.run?.result));
    const { messages } = await runner.loadBranch(runner.scope("paying"));
    expect(JSON.stringify(messages.at(-1))).toContain("20");
    await runner.close();
  });

  test("mistakes are told in a sentence", async () => {
    const { folder, where } = await open();
    const run = (...words: string[]) => bough(folder, "workflow", ...words, ...where);
    const gone = await run("show", "gone");
    expect(gone).toMatchObject({ code: 1, stdout: "" });
    expect(gone.stderr).toContain('There is no execution "gone". bough workflow ls lists');
    expect((await run("show", "done", "--branch", "nope")).stderr).toMatch(/branch "nope"/);
    const text = await run("signal", "paying", "paid", "hello");
    expect(text).toMatchObject({ code: 2 });
    expect(text.stderr).toContain("The payload is not JSON: hello.");
    expect((await run("signal", "done", "paid")).stderr).toContain("has no open turn that could take a signal");
    expect((await run("ls", "--limit", "0")).stderr).toContain("--limit must be an integer ≥ 1.");
  });
});

test("workflows with executions of one id are told apart by name", async () => {
  const { folder, store } = await filled();
  const runner = createWorkflow(
    workflow("other", async () => 1),
    { store, telemetry: false },
  );
  await runner.run("x", { executionId: "done" }).result;
  await runner.close();
  const run = (...words: string[]) => bough(folder, "workflow", ...words, "--store", store);
  const several = await run("show", "done");
  expect(several).toMatchObject({ code: 2 });
  expect(several.stderr).toMatch(/Choose one with --workflow: (order, other|other, order)\./);
  expect((await run("show", "done", "--workflow", "order")).stdout).toContain("paid");
});
