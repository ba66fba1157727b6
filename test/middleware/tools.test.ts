import { describe, expect, test } from "vitest";
import { clarification, type Middleware, planning, planState } from "../../src/middleware/index.ts";
import { prepareTools } from "../../src/tools/index.ts";
import { FakeRun } from "./fake-run.ts";

async function toolOf(middleware: Middleware, name: string) {
  const tool = (await prepareTools([middleware.tools!])).get(name)!;
  const use = async (input: never, context: ReturnType<FakeRun["toolContext"]>) => {
    const parsed = await tool.parse(input);
    return "problem" in parsed ? parsed : tool.execute?.(parsed.value, context);
  };
  return { tool, use };
}

describe("clarification", () => {
  test("the model asks a person, who answers", async () => {
    const { tool, use } = await toolOf(clarification(), "ask_user");
    const asked: unknown[] = [];
    const context = new FakeRun().toolContext(async (...question) => {
      asked.push(question);
      return "the blue one";
    });
    expect(await use({ question: "Which?", choices: ["red", "blue"] } as never, context)).toBe("the blue one");
    expect(await use({ question: "Why?" } as never, context)).toBe("the blue one");
    expect(asked).toEqual([
      ["Which?", { choices: ["red", "blue"] }],
      ["Why?", {}],
    ]);
    expect(tool).toMatchObject({ effect: "read", permission: false });
    expect(tool.inputSchema).toMatchObject({ required: ["question"] });
  });

  test("what is no question is not asked", async () => {
    const { use } = await toolOf(clarification(), "ask_user");
    expect(await use({ question: 7 } as never, new FakeRun().toolContext())).toMatchObject({
      problem: expect.anything(),
    });
  });
});

describe("planning", () => {
  const steps = [
    { step: "look", status: "completed" as const },
    { step: "think", status: "in_progress" as const },
    { step: "act", status: "pending" as const },
  ];

  test("a plan is kept with the branch and shown to whoever watches", async () => {
    const run = new FakeRun();
    const { use } = await toolOf(planning(), "update_plan");
    expect(await use({ steps } as never, run.toolContext())).toMatch(/1 of 3/);
    expect(run.emitted).toEqual([["plan", { steps }]]);
    expect(run.bag.branchPatch()).toEqual({ "@plan": { version: 1, data: steps } });
    expect(await use({ steps: [{ step: "x", status: "someday" }] } as never, run.toolContext())).toMatchObject({
      problem: expect.stringMatching(/status/),
    });
  });

  test("every model call is shown the plan as it stands, beside a prompt that stays as it is", async () => {
    const run = new FakeRun();
    await run.bag.set(planState, steps);
    const prompt = [
      { role: "system", content: "Be kind." },
      { role: "user", content: "Go" },
    ] as const;
    const context = run.iteration(1, { prompt, reminders: ["Mind the gap."] });
    const before = context.request;
    await planning().beforeIteration?.(context);
    expect(context.request.prompt).toBe(prompt);
    expect(context.request.reminders).toEqual([
      "Mind the gap.",
      expect.stringMatching(/^The current plan .*:\n\[x\] look\n\[>\] think\n\[ \] act$/),
    ]);
    expect(before.reminders).toEqual(["Mind the gap."]);
  });

  test("without a plan nothing is added", async () => {
    const context = new FakeRun().iteration(1, { prompt: [{ role: "user", content: "Go" }] });
    const before = context.request;
    await planning().beforeIteration?.(context);
    expect(context.request).toBe(before);
  });

  test("an empty list clears the plan", async () => {
    const run = new FakeRun();
    await run.bag.set(planState, steps);
    const { use } = await toolOf(planning(), "update_plan");
    await use({ steps: [] } as never, run.toolContext());
    expect(await run.bag.get(planState)).toEqual([]);
  });
});
