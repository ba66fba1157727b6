import { describe, expect, test } from "vitest";
import { formOf, type Question } from "./questions.ts";

const permission: Question = {
  id: "i",
  kind: "permission",
  request: { toolName: "rm", input: { path: "/\u001b[2J" } },
};
const again: Question = { ...permission, request: { ...permission.request, again: true } };
const clarification: Question = {
  id: "i",
  kind: "clarification",
  request: { question: "Which?", choices: ["oak", "larch"] },
};
const continuation: Question = { id: "i", kind: "continuation", request: { iteration: 11, limit: 10 } };
const clientTool: Question = { id: "i", kind: "client-tool", request: { toolName: "open", input: {} } };

test("a question that can't be answered for ever says until when", () => {
  const { lines } = formOf({ ...clarification, expiresAt: Date.UTC(2096, 9, 2, 7) });
  expect(lines.at(-1)).toMatch(/^Answer before 2096-10-02/);
  expect(formOf(clarification).lines).toHaveLength(3);
});

describe("an answer", () => {
  test.each([
    [permission, "y", { approved: true, choice: "once" }],
    [permission, "YES", { approved: true, choice: "once" }],
    [permission, "always", { approved: true, choice: "always" }],
    [permission, "n", { approved: false }],
    [permission, "no it is needed", { approved: false, reason: "it is needed" }],
    [permission, '{"approved":true}', { approved: true }],
    [again, "y", { approved: true, choice: "once" }],
    [clarification, "2", { answer: "larch" }],
    [clarification, "3", { answer: "3" }],
    [clarification, "a beech", { answer: "a beech" }],
    [continuation, "5", { approved: true, iterations: 5 }],
    [continuation, "n", { approved: false }],
    [clientTool, "opened", { output: "opened" }],
  ])("%j: %j", (question, line, answer) => expect(formOf(question).read(line)).toEqual({ answer }));

  test.each([
    [permission, ""],
    [permission, "yep, sure"],
    [permission, "{oops"],
    [again, "a"],
    [clarification, ""],
    [continuation, "0"],
    [clientTool, ""],
  ])("%j is not given by %j", (question, line) => expect(formOf(question).read(line)).toHaveProperty("problem"));
});

test("a permission shows all of the arguments, and nothing that steers the terminal", () => {
  const long = { ...permission, request: { toolName: "rm", input: { path: "x".repeat(5000), evil: "\u009b2J" } } };
  const shown = formOf(long).lines.join("\n");
  expect(shown).toContain("x".repeat(5000));
  expect(shown).not.toContain("\u009b");
});
