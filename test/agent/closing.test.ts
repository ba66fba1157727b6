// An agent that closes: what runs comes to its end, or is handed over.

import { expect, test } from "vitest";
import { defineTool } from "../../src/index.ts";
import { endless, given, pass, s, until } from "./kit.ts";

test("closing waits for what runs as long as it is told", async () => {
  const { agent, clock } = await given(
    (prompt) => {
      if (prompt.length > 1) return "Done.";
      return { calls: [{ name: "sleep", input: {} }] };
    },
    {
      tools: {
        sleep: defineTool({ input: { type: "object" }, execute: () => clock.sleep(3000).then(() => "slept") }),
      },
    },
  );
  const run = agent.run("Go", s);
  await until(() => clock.sleeping > 1);
  const closing = agent.close({ drainMs: 5000 });
  await pass(clock, 3500);
  await closing;
  expect(await run.result).toMatchObject({ status: "completed" });
});

test("closing hands over what does not end in time, and refuses what is run then", async () => {
  const begun = { count: 0 };
  const { agent, clock } = await given([{ calls: [{ name: "wait", input: {} }] }], {
    tools: { wait: endless(begun) },
  });
  const run = agent.run("Go", s);
  await until(() => begun.count === 1);
  const closing = agent.close({ drainMs: 5000 });
  await pass(clock, 4500);
  expect(await Promise.race([run.result, "runs"])).toBe("runs");
  await pass(clock, 1000);
  await closing;
  expect(await run.result).toMatchObject({ status: "parked", reason: "handed-over" });
  await expect(agent.run("More", s).result).rejects.toMatchObject({ code: "store_closed" });
});

test("closing does not wait for people: a run that does is handed over when its other calls are done", async () => {
  const { agent, clock } = await given(
    [
      {
        calls: [
          { name: "remove", input: {} },
          { name: "sleep", input: {} },
        ],
      },
    ],
    {
      tools: {
        remove: defineTool({ input: { type: "object" }, permission: true, execute: () => "removed" }),
        sleep: defineTool({ input: { type: "object" }, execute: () => clock.sleep(1000).then(() => "slept") }),
      },
    },
  );
  const run = agent.run("Go", { ...s, questions: "wait" });
  await until(() => clock.sleeping > 1);
  const closing = agent.close({ drainMs: 60_000 });
  expect(await Promise.race([run.result, "runs"])).toBe("runs");
  await pass(clock, 1500);
  await closing;
  const { status, reason, interactions } = await run.result;
  expect({ status, reason }).toEqual({ status: "parked", reason: "handed-over" });
  expect(interactions).toMatchObject([{ kind: "permission", request: { toolName: "remove" } }]);
});
