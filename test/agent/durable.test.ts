import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  type Agent,
  type Checkpoint,
  type Durable,
  defineTool,
  fullHistory,
  lastN,
  latestOnly,
  type Middleware,
  timeBased,
} from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import {
  add,
  adding,
  endless,
  eventsOf,
  expectLegal,
  factTypes,
  given,
  main,
  ofType,
  refused,
  s,
  said,
} from "./kit.ts";

const threeSteps = () => [adding(1), adding(2), adding(3), "Done."];

/** A checkpoint in a word: source@step of so many messages. */
function word({ source, step, messageIndex, label }: Checkpoint): string {
  return `${label ?? source}@${step}/${messageIndex}`;
}

async function manifest(agent: Agent): Promise<string[]> {
  return (await agent.listCheckpoints(main)).map(word);
}

/** A run that stops for good while its third iteration's tool runs: what a crash leaves behind. */
async function stuckInThird(durable: Durable) {
  const calls = [{ name: "wait", input: {} }];
  const wait = endless();
  const setting = await given([adding(1), adding(2), { calls }], { tools: { add, wait }, durable });
  const run = setting.agent.run("Go", s);
  await eventsOf(run, (event) => event.type === "tool-start" && event.toolName === "wait" && void run.park());
  return setting;
}

describe("checkpoints after each turn", () => {
  test("the newest one stays by default; it tells where the turn ended", async () => {
    const { agent, clock } = await given(() => "ok", { durable: {} });
    const run = agent.run("1", s);
    const events = await eventsOf(run);
    const [saved] = ofType(events, "checkpoint-save");
    expect(await agent.listCheckpoints(main)).toMatchObject([
      {
        id: saved!.checkpointId,
        source: "turn",
        step: 1,
        messageIndex: 2,
        seq: ofType(events, "turn.committed")[0]!.seq,
      },
    ]);
    clock.advance(10);
    await agent.run("2", s).result;
    expect(await manifest(agent)).toEqual(["turn@1/4"]);
  });

  test.each([
    ["lastN", lastN(2), ["turn@1/6", "turn@1/4"]],
    ["fullHistory", fullHistory(), ["turn@1/6", "turn@1/4", "turn@1/2"]],
    ["timeBased", timeBased(1_500), ["turn@1/6", "turn@1/4"]],
    ["latestOnly", latestOnly(), ["turn@1/6"]],
  ] as const)("%s keeps its own, newest first", async (_, retention, expected) => {
    const { agent, clock } = await given(() => "ok", { durable: { checkpoints: "per-turn", retention } });
    for (let i = 0; i < 3; i++) {
      clock.advance(1_000);
      await agent.run(`${i}`, s).result;
    }
    expect(await manifest(agent)).toEqual(expected);
  });

  test("none is taken of a turn that failed or was interrupted, and none without being asked for", async () => {
    const failing = await given([{ error: new Error("no") }], { durable: {} });
    await failing.agent.run("1", s).result;
    expect(await manifest(failing.agent)).toEqual([]);
    const plain = await given(["ok"]);
    await plain.agent.run("1", s).result;
    expect(await manifest(plain.agent)).toEqual([]);
  });

  test("it names the end of its own turn, also when the next one has begun already", async () => {
    const { agent } = await given(() => "ok", { durable: { retention: fullHistory() } });
    const ends: number[] = [];
    let next: Promise<unknown> | undefined;
    agent.subscribe("turn.committed", ({ seq }) => {
      ends.push(seq);
    });
    await eventsOf(agent.run("1", s), (event) => {
      if (event.type === "turn.committed") next ??= agent.run("2", s).result;
    });
    await next;
    const checkpoints = await agent.listCheckpoints(main);
    expect(checkpoints.map(({ seq }) => seq).sort((a, b) => a - b)).toEqual(ends);
    expect(checkpoints.every(({ turnId }) => turnId === undefined)).toBe(true);
  });

  test("one that can't be saved does not make a committed turn a failed one", async () => {
    const store = memoryStore();
    store.saveCheckpoint = () => Promise.reject(new Error("disk full"));
    const { agent } = await given(["ok"], { durable: {}, store });
    const run = agent.run("1", s);
    const events = await eventsOf(run);
    expect((await run.result).status).toBe("completed");
    expect(ofType(events, "error-report")).toMatchObject([{ source: "run", error: { message: "disk full" } }]);
    expect(events.at(-1)).toMatchObject({ type: "run-end", status: "completed" });
  });
});

describe("checkpoints after each iteration", () => {
  test("are there while the turn runs, and cleared when it is committed", async () => {
    const during: string[][] = [];
    const looking: Middleware = { name: "looks", beforeIteration: async () => void during.push(await manifest(agent)) };
    const durable = { checkpoints: "per-iteration", retention: lastN(2) } as const;
    const { agent } = await given(threeSteps(), { tools: { add }, durable, middleware: [looking] });
    await agent.run("Go", s).result;
    expect(during).toEqual([[], ["loop@1/3"], ["loop@2/5", "loop@1/3"], ["loop@3/7", "loop@2/5"]]);
    expect(await manifest(agent)).toEqual([]);
  });

  test("are cleared by default as well", async () => {
    const { agent } = await given(threeSteps(), { tools: { add }, durable: { checkpoints: "per-iteration" } });
    await agent.run("Go", s).result;
    expect(await manifest(agent)).toEqual([]);
  });

  test.each([fullHistory(), timeBased(60_000)])("stay for time travel under $name", async (retention) => {
    const durable = { checkpoints: "per-iteration", retention } as const;
    const { agent } = await given(threeSteps(), { tools: { add }, durable });
    await agent.run("Go", s).result;
    expect(await manifest(agent)).toEqual(["loop@3/7", "loop@2/5", "loop@1/3"]);
  });

  test("stay after a turn that was left open, and the branch is loaded at the newest to go on", async () => {
    const { again, agent } = await stuckInThird({ checkpoints: "per-iteration" });
    const [newest] = await agent.listCheckpoints(main);
    expect(word(newest!)).toBe("loop@2/5");
    const other = again({ script: ["Finished."], tools: { add, wait: { ...endless(), execute: () => "waited" } } });
    const branch = await other.loadAtCheckpoint(main, newest!.id);
    expect(branch.uncommittedTurn?.id).toBe(newest!.turnId);
    const { status, messages } = await other.run(undefined, { branch }).result;
    expect(status).toBe("completed");
    expect(said(messages)).toEqual([
      "user: Go",
      "assistant: add()",
      "tool: 3",
      "assistant: add()",
      "tool: 4",
      "assistant: wait()",
      'tool: "waited"',
      "assistant: Finished.",
    ]);
    expect(await manifest(other)).toEqual([]);
  });
});

test("an iteration that is finished after a restart has its checkpoint, too", async () => {
  const durable = { checkpoints: "per-iteration", retention: fullHistory() } as const;
  const { again } = await stuckInThird(durable);
  const wait = defineTool({ input: {}, execute: () => "waited" });
  const agent = again({ script: ["Done."], tools: { add, wait } });
  await agent.run(undefined, s).result;
  expect(await manifest(agent)).toEqual(["loop@3/7", "loop@2/5", "loop@1/3"]);
});

describe("checkpoints by hand", () => {
  const marking = defineTool({
    description: "Marks its place.",
    input: z.object({ label: z.string() }),
    execute: ({ label }, context) => context.checkpoint(label),
  });
  const mark = (label: string) => ({ calls: [{ name: "mark", input: { label } }] });
  const manual = { checkpoints: "manual", retention: fullHistory() } as const;

  test("a tool and a hook name their places; nothing else is named", async () => {
    const hook: Middleware = {
      name: "marks",
      async afterIteration(context) {
        await context.checkpoint("hook");
      },
    };
    const options = { tools: { mark: marking }, durable: manual, middleware: [hook] };
    const { agent } = await given([mark("tool"), "Done."], options);
    const run = agent.run("Go", s);
    const events = await eventsOf(run);
    expect(await manifest(agent)).toEqual(["hook@2/3", "hook@1/3", "tool@1/2"]);
    const listed = await agent.listCheckpoints(main);
    expect(ofType(events, "checkpoint-save").map(({ checkpointId }) => checkpointId)).toEqual(
      listed.map(({ id }) => id).reverse(),
    );
    expect(listed.every(({ turnId, source }) => turnId !== undefined && source === "manual")).toBe(true);
  });

  test("a tool gets the id, which works without durable execution too", async () => {
    const { agent } = await given([mark("here"), "Done."], { tools: { mark: marking } });
    const { messages } = await agent.run("Go", s).result;
    const [checkpoint] = await agent.listCheckpoints(main);
    expect(said(messages)[2]).toBe(`tool: "${checkpoint!.id}"`);
  });

  test("an earlier position can be named, as it was then; one that is not there can't", async () => {
    const { agent } = await given([adding(), "Three."], { tools: { add } });
    await agent.run("Go", s).result;
    const [started, input] = await agent.events(main, { after: 1, limit: 2 });
    const named = await agent.saveCheckpoint(main, { seq: input!.seq });
    expect(named).toMatchObject({ seq: input!.seq, step: 0, messageIndex: 1, turnId: started!.id });
    for (const seq of [-1, 1.5, 99]) await refused(agent.saveCheckpoint(main, { seq }), "position_not_on_branch");
    const branch = await agent.loadAtCheckpoint(main, named.id, { ifStale: "fork" });
    const model = scriptedModel(["Otherwise."]);
    expect(await agent.run(undefined, { branch, config: { model } }).text()).toBe("Otherwise.");
    expect(said(model.calls[0]!.prompt)).toEqual(["user: Go"]);
  });

  test("the agent is asked for one while it runs", async () => {
    const wait = endless();
    const { agent } = await given([{ calls: [{ name: "wait", input: {} }] }], { tools: { wait }, durable: manual });
    const run = agent.run("Go", s);
    let saved: Checkpoint | undefined;
    await eventsOf(run, async (event) => {
      if (event.type !== "tool-start") return;
      saved = await agent.saveCheckpoint(main, { label: "outside" });
      void run.interrupt();
    });
    expect(saved).toMatchObject({ step: 1, messageIndex: 2, source: "manual", label: "outside" });
    expect(saved!.turnId).toBe((await run.result).turnId);
  });
});

describe("going back to a checkpoint inside a turn that is over", () => {
  const durable = { checkpoints: "per-iteration", retention: fullHistory() } as const;

  async function travelled() {
    const setting = await given(threeSteps(), { tools: { add }, durable });
    await setting.agent.run("Go", s).result;
    const checkpoint = (await setting.agent.listCheckpoints(main)).find(({ step }) => step === 2)!;
    return { ...setting, checkpoint };
  }

  const upToThere = ["user: Go", "assistant: add()", "tool: 3", "assistant: add()", "tool: 4"];

  test("is refused unless the caller says how", async () => {
    const { agent, checkpoint } = await travelled();
    const newest = (await agent.loadBranch("s")).seq;
    const data = { checkpointId: checkpoint.id, seq: checkpoint.seq, newest };
    await refused(agent.loadAtCheckpoint(main, checkpoint.id), "checkpoint_stale", data);
    await refused(agent.loadAtCheckpoint(main, "nothing"), "checkpoint_not_found");
  });

  test("a fork goes on from there, and the branch itself stays", async () => {
    const { agent, checkpoint } = await travelled();
    const branch = await agent.loadAtCheckpoint(main, checkpoint.id, { ifStale: "fork", newBranchId: "b" });
    expect(said(branch.messages)).toEqual(upToThere);
    const model = scriptedModel(["Another end."]);
    const { text, status } = await agent.run(undefined, { branch, config: { model } }).result;
    expect({ text, status }).toEqual({ text: "Another end.", status: "completed" });
    expectLegal(model.calls[0]!.prompt);
    expect(said(model.calls[0]!.prompt)).toEqual(upToThere);
    expect(said((await agent.loadBranch({ sessionId: "s", branchId: "b" })).messages)).toEqual([
      ...upToThere,
      "assistant: Another end.",
    ]);
    expect((await agent.loadBranch({ sessionId: "s", branchId: "main" })).messages).toHaveLength(8);
  });

  test("a revert goes on from there on the same branch", async () => {
    const { agent, checkpoint, again } = await travelled();
    await agent.loadAtCheckpoint(main, checkpoint.id, { ifStale: "revert" });
    const other = again({ script: [adding(9), "Another end."] });
    expect(await other.run(undefined, s).text()).toBe("Another end.");
    expect(said((await agent.loadBranch("s")).messages)).toEqual([
      ...upToThere,
      "assistant: add()",
      "tool: 11",
      "assistant: Another end.",
    ]);
    await refused(other.run(undefined, s).result, "nothing_to_resume");
  });

  test("in the middle of a batch answers the calls that had no result there", async () => {
    const waiting = defineTool({
      description: "Marks its place.",
      input: z.object({}),
      execute: (_, context) => context.checkpoint("inside"),
    });
    const calls = [{ name: "waiting", input: {} }, ...adding().calls];
    const { agent } = await given([{ calls }, "Done."], { tools: { add, waiting }, durable });
    await agent.run("Go", s).result;
    const inside = (await agent.listCheckpoints(main)).find(({ label }) => label === "inside")!;
    const branch = await agent.loadAtCheckpoint(main, inside.id, { ifStale: "fork" });
    const model = scriptedModel(["Fine."]);
    await agent.run(undefined, { branch, config: { model } }).result;
    expectLegal(model.calls[0]!.prompt);
    expect(said(model.calls[0]!.prompt)[2]).toContain("Not executed");
  });

  test("new input goes on from there as well", async () => {
    const { agent, checkpoint } = await travelled();
    const branch = await agent.loadAtCheckpoint(main, checkpoint.id, { ifStale: "fork" });
    const model = scriptedModel(["Yes."]);
    await agent.run("Enough?", { branch, config: { model } }).result;
    expectLegal(model.calls[0]!.prompt);
    expect(said(model.calls[0]!.prompt)).toEqual([...upToThere, "user: Enough?"]);
  });

  test("the fork hooks see a fork that a checkpoint makes", async () => {
    const seen: string[] = [];
    const middleware: Middleware[] = [{ name: "forks", beforeFork: ({ newBranchId }) => void seen.push(newBranchId) }];
    const { agent } = await given(threeSteps(), { tools: { add }, durable, middleware });
    await agent.run("Go", s).result;
    const [newest] = await agent.listCheckpoints(main);
    await agent.loadAtCheckpoint(main, newest!.id, { ifStale: "fork", newBranchId: "b" });
    expect(seen).toEqual(["b"]);
  });
});

describe("going back to a checkpoint between turns", () => {
  test("the newest is current, an older one is stale; the past can be forked and reverted to", async () => {
    const { agent } = await given((prompt) => `${prompt.length}`, { durable: { retention: fullHistory() } });
    for (const input of ["1", "2", "3"]) await agent.run(input, s).result;
    const [third, second, first] = await agent.listCheckpoints(main);
    expect((await agent.loadAtCheckpoint(main, third!.id)).messages).toHaveLength(6);
    await refused(agent.loadAtCheckpoint(main, second!.id), "checkpoint_stale");
    const fork = await agent.loadAtCheckpoint(main, first!.id, { ifStale: "fork", newBranchId: "b" });
    expect(await agent.run("again", { branch: fork }).text()).toBe("3");
    await refused(agent.run(undefined, { branch: fork }).result, "nothing_to_resume");
    await agent.loadAtCheckpoint(main, second!.id, { ifStale: "revert" });
    expect(await agent.run("again", main).text()).toBe("5");
    expect((await factTypes(agent)).filter((type) => type === "branch.reverted")).toHaveLength(1);
  });
});
