import { expect, test } from "vitest";
import { z } from "zod";
import { checkWorkflow, isWorkflow, workflow } from "./workflow.ts";

test("a workflow has its name, its options and a digest that tells its versions apart", () => {
  const one = workflow("review", async (_flow, draft: { text: string }) => draft.text);
  const two = workflow("review", { version: 2 }, async () => 1);
  expect(one).toMatchObject({ name: "review", options: {} });
  expect(one.digest).toMatch(/^[0-9a-f]{64}$/);
  expect(workflow("review", { version: 1 }, async () => 2).digest).toBe(one.digest);
  expect(two.digest).not.toBe(one.digest);
  expect(isWorkflow(one)).toBe(true);
  expect(isWorkflow({ name: "review" })).toBe(false);
});

test("the input is typed by its schema, and the output by what the function returns", () => {
  const typed = workflow("count", { input: z.object({ text: z.string() }) }, async (_flow, { text }) => text.length);
  const run: (flow: never, input: { text: string }) => number | Promise<number> = typed.run;
  expect(run).toBe(typed.run);
});

test("misuse is refused with a sentence when the workflow is defined", () => {
  const code = async () => 1;
  expect(() => workflow("", code)).toThrow("A workflow's name must have 1 to 64 letters");
  expect(() => workflow("a b", code)).toThrow("A workflow's name must have 1 to 64 letters");
  expect(() => workflow("a", {} as never, undefined as never)).toThrow("A workflow needs a function");
  expect(() => workflow("a", { versio: 2 } as never, code)).toThrow('Did you mean "version"?');
  expect(() => workflow("a", { version: 0 }, code)).toThrow("version must be an integer ≥ 1.");
  expect(() => workflow("a", { conversation: "all" } as never, code)).toThrow("conversation must be one of");
  expect(() => checkWorkflow("a", [] as never)).toThrow("must be an object");
});
