// Steps of function workflows, on a store in memory: what is recorded, and what a second pass makes of it.

import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import type { BoughEvent } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { checkLogs } from "../../src/testing/index.ts";
import {
  createWorkflow,
  type Flow,
  type Workflow,
  type WorkflowRunnerOptions,
  workflow,
} from "../../src/workflows/index.ts";
import { deadOwner } from "../sessions/kit.ts";

const runnerOf = <Input, Output>(flow: Workflow<Input, Output>, options: WorkflowRunnerOptions = {}) => {
  const runner = createWorkflow(flow, { telemetry: false, random: () => 0, ...options });
  onTestFinished(() => runner.close());
  return runner;
};

/** What the code of a workflow comes to. */
const outcome = async (code: (flow: Flow) => unknown, options: WorkflowRunnerOptions = {}) => {
  const runner = runnerOf(
    workflow("w", async (flow, _input: string) => code(flow)),
    options,
  );
  const result = await runner.run("go", { executionId: "e" }).result;
  const facts = await runner.events(runner.scope("e"));
  return { result, facts, runner };
};

const keysOf = (facts: readonly unknown[]) =>
  (facts as { type: string; key?: string }[]).flatMap(({ type, key }) => (type === "step.returned" ? [key] : []));

describe("an execution", () => {
  test("is a turn with its input, a fact for each step, and its output as the last message", async () => {
    const { result, facts } = await outcome(async (flow) => {
      const text = await flow.step("make", () => "Hello");
      return { text, loud: await flow.step("shout", () => text.toUpperCase()) };
    });
    expect(result).toMatchObject({ status: "completed", output: { text: "Hello", loud: "HELLO" } });
    expect(facts.map(({ type }) => type)).toEqual([
      ...["branch.created", "turn.started", "message.added", "step.returned", "step.returned"],
      ...["message.added", "turn.committed"],
    ]);
    expect(facts[1]).toMatchObject({ metadata: { workflow: { name: "w", version: 1, executionId: "e" } } });
  });

  test("is begun once: its id is refused while it is open and after it ended", async () => {
    const runner = runnerOf(workflow("w", async (flow, _input: string) => flow.ask("go")));
    const { interactions } = await runner.run("x", { executionId: "e" }).result;
    await expect(runner.run("x", { executionId: "e" }).result).rejects.toThrow(
      'The execution "e" is open: run() without an input goes on with it.',
    );
    await (await runner.respond(runner.scope("e"), interactions![0]!.id, { approved: true }))!.result;
    await expect(runner.run("x", { executionId: "e" }).result).rejects.toThrow('The execution "e" has ended.');
  });

  test("takes any JSON as its input, checked by the schema, and text from elsewhere as whichever form fits", async () => {
    const flow = workflow("w", { input: z.object({ n: z.number() }) }, async (_flow, { n }) => n + 1);
    const runner = runnerOf(flow);
    expect((await runner.run({ n: 1 }).result).output).toBe(2);
    const failed = await runner.run({ n: "1" } as never).result;
    expect(failed.error).toMatchObject({ code: "invalid_argument", message: expect.stringContaining('"w"') });
    await runner.createSession("s");
    expect((await runner.run('{"n":4}' as never, { sessionId: "s" }).result).output).toBe(5);
    const list = runnerOf(workflow("l", async (_flow, input: number[]) => input.length));
    expect((await list.run([1, 2]).result).output).toBe(2);
  });

  test("fails with the error of its code, and with an output that does not fit", async () => {
    const thrown = await outcome(() => {
      throw new Error("no luck");
    });
    expect(thrown.result).toMatchObject({ status: "failed", error: { code: "run_failed", message: "no luck" } });
    const runner = runnerOf(workflow("w", { output: z.string() }, async () => 5 as never));
    expect((await runner.run("x").result).error).toMatchObject({ code: "output_invalid" });
    const big = await outcome(() => ({ n: 1n }));
    expect(big.result.error?.message).toBe(
      "The output of the workflow \"w\" can't be stored: a bigint can't be stored.",
    );
  });
});

describe("steps", () => {
  test("are named by their place: repeated names are counted, and nothing in a name is taken for a path", async () => {
    const { result, facts } = await outcome(async (flow) => {
      await flow.step("a", () => 1);
      await flow.step("a", () => 2);
      await flow.step("a/b[c]#2", () => 3);
      await flow.step("a", () => 4, { key: "mine" });
      await flow.all({ x: () => flow.step("a", () => 5), "y/z": () => flow.step("a", () => 6) });
      await flow.map("m", [1, 2], () => flow.step("a", () => 7));
      return flow.workflow(
        "inner",
        workflow("in", async (inner, n: number) => inner.step("a", () => n)),
        8,
      );
    });
    expect(result.output).toBe(8);
    expect(keysOf(facts)).toEqual([
      ...["a", "a#2", "a%2Fb%5Bc%5D%232", "mine", "all[x]/a", "all[y%2Fz]/a"],
      ...["m[0]/a", "m[1]/a", "inner/a", "inner"],
    ]);
  });

  test("that are ready together share an append", async () => {
    const store = memoryStore();
    let appends = 0;
    const counting = new Proxy(store, {
      get(target, name) {
        if (name === "append") appends++;
        const value = Reflect.get(target, name) as unknown;
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    const { result } = await outcome((flow) => flow.map("m", [1, 2, 3, 4, 5], (n) => flow.step("s", () => n)), {
      store: counting,
    });
    expect(result.output).toEqual([1, 2, 3, 4, 5]);
    expect(appends).toBeLessThanOrEqual(3);
  });

  test("give what the log gives back: a copy, with nothing where there was nothing", async () => {
    const given = { list: [1], gone: undefined };
    const { result } = await outcome(async (flow) => {
      const got = await flow.step("s", () => given);
      const none = await flow.step("none", () => undefined);
      return { isCopy: got !== given, keys: Object.keys(got), isNone: none === undefined };
    });
    expect(result.output).toEqual({ isCopy: true, keys: ["list"], isNone: true });
  });

  test("whose outputs can't be stored fail with a sentence, and are not run again", async () => {
    let ran = 0;
    const { result } = await outcome(async (flow) => {
      const words = (error: Error) => error.message;
      const make = () => {
        ran++;
        return 1n as never;
      };
      const real = await flow.step("real", make, { retry: { attempts: 3 } }).catch(words);
      const date = await flow.step("date", () => new Date() as never).catch(words);
      return [real, date];
    });
    expect(result.output).toEqual([
      "The output of the step \"real\" can't be stored: a bigint can't be stored.",
      'The output of the step "date" can\'t be stored: only plain objects can be stored.',
    ]);
    expect(ran).toBe(1);
  });

  test("with large outputs keep them as content, in this pass and the next", async () => {
    const store = memoryStore();
    const flow = workflow("w", async (flow, _input: string) => {
      const text = await flow.step("large", () => "ü".repeat(200_000));
      await flow.ask("go");
      return text.length;
    });
    const runner = runnerOf(flow, { store });
    const { interactions } = await runner.run("x", { executionId: "e" }).result;
    const facts = await runner.events(runner.scope("e"));
    const [fact] = facts.filter(({ type }) => type === "step.returned") as { contentId?: string; output?: unknown }[];
    expect(fact!.output).toBeUndefined();
    expect(fact!.contentId).toMatch(/^[0-9a-f]{64}$/);
    const run = await runner.respond(runner.scope("e"), interactions![0]!.id, { approved: true });
    expect((await run!.result).output).toBe(200_000);
  });

  test("are tried again, with a time for each attempt; errors are rejections that the code may catch", async () => {
    const attempts: number[] = [];
    const { result, facts } = await outcome(async (flow) => {
      const third = await flow.step(
        "third",
        ({ attempt }) => {
          attempts.push(attempt);
          if (attempt < 3) throw new Error("not yet");
          return attempt;
        },
        { retry: { attempts: 3, delayMs: 1 } },
      );
      const slow = await flow
        .step("slow", ({ signal }) => new Promise((_, reject) => signal.addEventListener("abort", reject)), {
          timeoutMs: 5,
        })
        .catch((error) => error.message);
      const once = await flow
        .step("bad", () => Promise.reject(new Error("no")), { retry: { attempts: 5, when: () => false } })
        .catch((error) => error.message);
      return { third, slow, once };
    });
    expect(result.output).toEqual({ third: 3, slow: 'The step "slow" took longer than 5 ms.', once: "no" });
    expect(attempts).toEqual([1, 2, 3]);
    expect(facts).toContainEqual(expect.objectContaining({ key: "third", tries: 3 }));
    expect(facts).toContainEqual(expect.objectContaining({ key: "slow", error: expect.anything() }));
  });

  test("are not awaited in vain: what was begun and not awaited is recorded before the turn closes", async () => {
    const { result, facts } = await outcome((flow) => {
      void flow.step("loose", async () => 1);
      void flow.step("failing", () => Promise.reject(new Error("no")));
      return "done";
    });
    expect(result.output).toBe("done");
    expect(keysOf(facts).toSorted()).toEqual(["failing", "loose"]);
  });

  test("misused are refused with a sentence", async () => {
    const { result } = await outcome(async (flow) => {
      const words = (work: Promise<unknown>) =>
        work.then(
          () => "nothing wrong",
          (error: Error) => error.message,
        );
      await flow.step("a", () => 1, { key: "k" });
      return [
        await words(flow.step("b", () => 1, { key: "k" })),
        await words(Promise.all([flow.step("c", () => 1, { key: "x" }), flow.step("d", () => 1, { key: "x" })])),
        await words(flow.step("", () => 1)),
        await words(flow.step("e", undefined as never)),
        await words(flow.step("f", () => 1, { retries: 2 } as never)),
        await words(flow.step("g", () => 1, { retry: { attempts: 0 } })),
        await words(flow.sleep("h", "1s" as never)),
        await words(flow.map("i", [1, 2], () => 1, { key: () => "same" })),
        await words(flow.race("j", {})),
        await words(flow.workflow("l", {} as never, 1)),
      ];
    });
    expect(result.output).toEqual([
      'The key "k" is used twice in this execution; a key identifies one step.',
      'The key "x" is used twice in this execution; a key identifies one step.',
      "The name of a step must be a non-empty string without control characters.",
      'The step "e" needs a function.',
      expect.stringContaining('may not have the key "retries"'),
      "retry.attempts must be an integer ≥ 1.",
      'The time of the sleep "h" must be a number of milliseconds ≥ 0.',
      'Two items of the map "i" have the key "same"; a key identifies one item.',
      expect.stringContaining('"j" needs an object of functions'),
      expect.stringContaining('The step "l" needs a workflow'),
    ]);
  });

  test("record time, chance and new ids, so that every pass sees the same", async () => {
    const seen: unknown[][] = [];
    const store = memoryStore();
    const flow = workflow("w", async (flow, _input: string) => {
      seen.push([await flow.now(), await flow.random(), await flow.id(), await flow.id("other")]);
      await flow.ask("go");
      return seen.length;
    });
    let n = 0;
    const runner = runnerOf(flow, { store, random: () => n++ });
    const { interactions } = await runner.run("x", { executionId: "e" }).result;
    const run = await runner.respond(runner.scope("e"), interactions![0]!.id, { approved: true });
    expect((await run!.result).output).toBe(2);
    expect(seen[1]).toEqual(seen[0]);
  });
});

describe("a step with effect once", () => {
  /** A runner whose process dies in the step, and the one that goes on. */
  const afterCrash = async (options: object, goesOn: { approved?: boolean; output?: unknown } | undefined) => {
    const store = memoryStore();
    let ran = 0;
    let hang = true;
    const flow = workflow("w", async (flow, _input: string) =>
      flow.step("charge", () => (++ran === 1 && hang ? new Promise<string>(() => {}) : `charged ${ran}`), {
        effect: "once",
        ...options,
      }),
    );
    const dead = createWorkflow(flow, { store, owner: deadOwner(), telemetry: false });
    const run = dead.run("x", { executionId: "e" });
    for await (const event of run as AsyncIterable<BoughEvent>) if (event.type === "step-start") break;
    hang = false;
    const runner = runnerOf(flow, { store });
    const first = await runner.run(undefined, { executionId: "e" }).result;
    if (!goesOn) return { result: first, ran, store };
    expect(first).toMatchObject({ status: "parked", reason: "question" });
    const [question] = first.interactions!;
    expect(question!.request).toMatchObject({ toolName: "charge", again: true });
    const again = await runner.respond(runner.scope("e"), question!.id, goesOn as never);
    return { result: await again!.result, ran, store };
  };

  test("asks a person after a crash, who lets it run again", async () => {
    const { result, ran, store } = await afterCrash({}, { approved: true });
    expect(result).toMatchObject({ status: "completed", output: "charged 2" });
    expect(ran).toBe(2);
    expect(await checkLogs(store)).toEqual([]);
  });

  test("or says what it returned, or denies it", async () => {
    const known = await afterCrash({}, { approved: true, output: { type: "text", value: "charged by hand" } });
    expect(known.result).toMatchObject({ output: "charged by hand" });
    expect(known.ran).toBe(1);
    const denied = await afterCrash({}, { approved: false });
    expect(denied.result.error?.message).toContain("running it again was denied");
  });

  test("is not asked about when reconcile knows", async () => {
    const known = await afterCrash({ reconcile: () => ({ output: "found" }) }, undefined);
    expect(known.result).toMatchObject({ output: "found" });
    const not = await afterCrash({ reconcile: () => "not-executed" }, undefined);
    expect(not.result).toMatchObject({ output: "charged 2" });
  });
});

describe("a pass over other code", () => {
  const parkedWith = async (code: (flow: Flow) => Promise<unknown>) => {
    const store = memoryStore();
    const runner = runnerOf(
      workflow("w", async (flow, _input: string) => code(flow)),
      { store },
    );
    const { interactions } = await runner.run("x", { executionId: "e" }).result;
    return { store, id: interactions![0]!.id };
  };
  const first = async (flow: Flow) => {
    const a = await flow.step("a", () => 1, { input: { n: 1 } });
    const b = await flow.step("b", () => 2);
    await flow.ask("go");
    return [a, b];
  };

  test("uses records by name, whatever their order, and reports those it did not ask for as they were", async () => {
    const { store, id } = await parkedWith(first);
    const ran: string[] = [];
    const other = workflow("w", async (flow, _input: string) => {
      await flow.step("new", () => ran.push("new"));
      const b = await flow.step("b", () => ran.push("b"));
      await flow.ask("go");
      return b;
    });
    const runner = runnerOf(other, { store });
    const told: unknown[] = [];
    runner.subscribe("flow-diverge", ({ keys, changed }) => void told.push({ keys, changed }));
    const run = await runner.respond(runner.scope("e"), id, { approved: true });
    expect((await run!.result).output).toBe(2);
    expect(ran).toEqual(["new"]);
    expect(told).toEqual([{ keys: ["a"], changed: undefined }]);
  });

  test("is refused by a strict workflow, also for an input that changed", async () => {
    const { store, id } = await parkedWith(first);
    const other = workflow("w", { strict: true }, async (flow, _input: string) => {
      await flow.step("a", () => 1, { input: { n: 2 } });
      await flow.step("b", () => 2);
      return flow.ask("go");
    });
    const runner = runnerOf(other, { store });
    const run = await runner.respond(runner.scope("e"), id, { approved: true });
    expect((await run!.result).error).toMatchObject({ code: "workflow_changed", data: { changed: ["a"], keys: [] } });
  });
});

describe("several at once", () => {
  test("race and any take the first, stop the others, and are the same in every pass", async () => {
    const store = memoryStore();
    const ended: string[] = [];
    const flow = workflow("w", async (flow, _input: string) => {
      const hang = (name: string) =>
        flow.step(
          name,
          ({ signal }) => new Promise((_, no) => signal.addEventListener("abort", () => no(ended.push(name)))),
        );
      const race = await flow.race("race", { quick: () => flow.step("s", () => 1), slow: () => hang("h1") });
      const any = await flow.any("any", {
        bad: () => flow.step("s", () => Promise.reject(new Error("no"))),
        good: () => flow.step("s", () => 2),
        asks: () => flow.ask("nobody"),
      });
      await flow.ask("go");
      return [race, any];
    });
    const runner = runnerOf(flow, { store });
    const parked = await runner.run("x", { executionId: "e" }).result;
    expect(parked.interactions).toHaveLength(1);
    expect(ended).toEqual(["h1"]);
    const run = await runner.respond(runner.scope("e"), parked.interactions![0]!.id, { approved: true });
    expect((await run!.result).output).toEqual([
      { name: "quick", value: 1 },
      { name: "good", value: 2 },
    ]);
    expect(ended).toEqual(["h1"]);
    expect(await checkLogs(store)).toEqual([]);
  });

  test("map works on so many at a time, and fails when all that began are done", async () => {
    let now = 0;
    let most = 0;
    const { result } = await outcome((flow) =>
      flow.map(
        "m",
        [1, 2, 3, 4, 5, 6],
        (n) =>
          flow.step("s", async () => {
            most = Math.max(most, ++now);
            await new Promise((done) => setImmediate(done));
            now--;
            if (n === 2) throw new Error("two");
            return n;
          }),
        { parallel: 2 },
      ),
    );
    expect(result.error?.message).toBe("two");
    expect(most).toBe(2);
    expect(now).toBe(0);
  });

  test("questions are asked together, and each answer lets its branch go on", async () => {
    const runner = runnerOf(
      workflow("w", async (flow, _input: string) =>
        flow.all({
          a: async () => (await flow.ask("a")) && (await flow.step("after", () => "a went on")),
          b: () => flow.ask("b", { kind: "clarification", request: { question: "Which?" } }),
        }),
      ),
    );
    const parked = await runner.run("x", { executionId: "e" }).result;
    expect(parked.interactions!.map(({ kind }) => kind)).toEqual(["permission", "clarification"]);
    const ref = runner.scope("e");
    const one = await runner.respond(ref, parked.interactions![0]!.id, { approved: true });
    const still = await one!.result;
    expect(still).toMatchObject({ status: "parked", reason: "question" });
    expect(keysOf(await runner.events(ref))).toEqual(["all[a]/after"]);
    const two = await runner.respond(ref, still.interactions![0]!.id, { answer: "that" });
    expect((await two!.result).output).toEqual({ a: "a went on", b: { answer: "that" } });
  });
});
