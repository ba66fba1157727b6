import { expect, test } from "vitest";
import type { JsonObject } from "../base/json.ts";
import type { InteractionBody } from "../wire/types.ts";
import { RemoteError } from "./errors.ts";
import { type ClientTools, ToolRunner } from "./tools.ts";

const call = (id: string, toolName = "locate"): InteractionBody => ({
  id,
  kind: "client-tool",
  request: { toolName, input: { precise: true } },
  openedAt: 0,
  callId: `call-${id}`,
});

function runner(tools: ClientTools, respond: (id: string, answer: JsonObject) => Promise<unknown> = async () => {}) {
  const answers: [string, JsonObject][] = [];
  const errors: unknown[] = [];
  const run = new ToolRunner({
    tools: () => tools,
    async respond(id, answer) {
      answers.push([id, answer]);
      await respond(id, answer);
    },
    onError: (error) => errors.push(error),
    clock: { now: () => 0, sleep: () => Promise.resolve() },
    random: () => 0,
    backoff: { minMs: 1, maxMs: 1 },
  });
  return { run, answers, errors };
}

const settled = () => new Promise((resolve) => setTimeout(resolve, 5));

test("Tools-1: an open call is answered once, however often it is seen", async () => {
  const { run, answers } = runner({ locate: { execute: ({ precise }) => ({ precise }) } });
  for (let i = 0; i < 5; i++) {
    run.see([call("i")]);
    await settled();
  }
  expect(answers).toEqual([["i", { output: { precise: true } }]]);
});

test("calls of tools that are not here, and other questions, are left to others", async () => {
  const { run, answers } = runner({ locate: { execute: () => 1 } });
  run.see([call("a", "other"), call("b", "constructor"), { ...call("c"), kind: "permission" } as InteractionBody]);
  await settled();
  expect(answers).toEqual([]);
});

test("what a tool throws is an answer, too, and nothing is null", async () => {
  const { run, answers } = runner({
    locate: {
      execute() {
        throw new Error("No signal.");
      },
    },
    wait: { execute: () => {} },
  });
  run.see([call("a"), call("b", "wait")]);
  await settled();
  expect(answers).toEqual([
    ["a", { error: "No signal." }],
    ["b", { output: null }],
  ]);
});

test("Tools-2: to come late is no failure; other refusals are told", async () => {
  const refuse = (code: "interaction_closed" | "forbidden", status: number) => async () => {
    throw new RemoteError(code, "No.", { status });
  };
  const late = runner({ locate: { execute: () => 1 } }, refuse("interaction_closed", 409));
  late.run.see([call("a")]);
  const forbidden = runner({ locate: { execute: () => 1 } }, refuse("forbidden", 403));
  forbidden.run.see([call("a")]);
  await settled();
  expect(late.errors).toEqual([]);
  expect(forbidden.errors).toMatchObject([{ code: "forbidden" }]);
});

test("an answer that does not arrive is given again", async () => {
  let tries = 0;
  const { run, answers } = runner({ locate: { execute: () => 1 } }, async () => {
    if (++tries < 3) throw new RemoteError("unreachable", "No line.");
  });
  run.see([call("a")]);
  await settled();
  expect(answers).toHaveLength(3);
});

test("work on a call that is gone is called off, and its answer kept back", async () => {
  let signal: AbortSignal | undefined;
  let finish = () => {};
  const { run, answers } = runner({
    locate: {
      execute: (_input, context) => {
        signal = context.signal;
        return new Promise<void>((resolve) => {
          finish = resolve;
        });
      },
    },
  });
  run.see([call("a")]);
  run.see([]);
  expect(signal!.aborted).toBe(true);
  finish();
  await settled();
  expect(answers).toEqual([]);
});
