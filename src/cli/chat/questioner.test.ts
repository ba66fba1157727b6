import { expect, test } from "vitest";
import type { JsonObject } from "../../base/json.ts";
import type { Conversation } from "../../chat/conversation.ts";
import type { Question } from "../../chat/questions.ts";
import type { Input } from "./input.ts";
import { Questioner } from "./questioner.ts";
import type { Screen } from "./screen.ts";

const place = { sessionId: "s", branchId: "main" };
const question = (id: string): Question => ({ id, kind: "permission", request: { toolName: id, input: {} } });
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** A questioner whose person types when the test says so; what happens is a list of words. */
function given() {
  const happened: string[] = [];
  let type: (line: string | undefined) => void = () => {};
  const input = {
    line: (_prompt: string, { signal }: { signal: AbortSignal }) =>
      new Promise<string | undefined>((resolve) => {
        type = resolve;
        signal.addEventListener("abort", () => resolve(undefined), { once: true });
      }),
  } as unknown as Input;
  const conversation = {
    async respond(_place: object, id: string, { approved }: JsonObject) {
      happened.push(`${approved ? "yes" : "no"} to ${id}`);
    },
  } as unknown as Conversation;
  const screen = {
    ask: ({ id }: Question) => happened.push(`asked ${id}`),
    note: (text: string) => happened.push(text.trim()),
    pause: () => happened.push("pause"),
    resume: () => happened.push("resume"),
  } as unknown as Screen;
  const questioner = new Questioner({ conversation, input, screen });
  return { questioner, happened, type: (line: string | undefined) => type(line) };
}

test("questions are asked one after the other, and the screen waits while somebody types", async () => {
  const { questioner, happened, type } = given();
  questioner.add(place, question("a"));
  questioner.add(place, question("b"));
  await settled();
  type("perhaps");
  await settled();
  type("y");
  await settled();
  type(undefined);
  await settled();
  expect(happened).toEqual([
    ...[
      "asked a",
      "pause",
      "resume",
      "Answer y, a or n; you can give a reason after n.",
      "pause",
      "resume",
      "yes to a",
    ],
    ...["asked b", "pause", "resume", "no to b"],
  ]);
});

test("Questioner-1: a question that was settled elsewhere is not answered, and the next one is asked", async () => {
  const { questioner, happened, type } = given();
  questioner.add(place, question("a"));
  questioner.add(place, question("b"));
  questioner.add(place, question("c"));
  await settled();
  questioner.settle("a");
  questioner.settle("b");
  await settled();
  type("n");
  await settled();
  expect(happened).toEqual(["asked a", "pause", "resume", "asked c", "pause", "resume", "no to c"]);
});

test('Q3: after an "always" the tool is asked about no more, but for a call that may have run', async () => {
  const { questioner, happened, type } = given();
  const of = (id: string, again?: true): Question => {
    return { id, kind: "permission", request: { toolName: "t", input: {}, ...(again && { again }) } };
  };
  for (const each of [of("a"), of("b"), of("c", true), question("d")]) questioner.add(place, each);
  await settled();
  for (const line of ["a", "y", "y"]) {
    type(line);
    await settled();
  }
  expect(happened.filter((each) => each.includes("asked"))).toEqual(["asked a", "asked c", "asked d"]);
});

test("at the end of a run nothing is open any more", async () => {
  const { questioner, happened } = given();
  questioner.add(place, question("a"));
  await settled();
  await questioner.end();
  expect(happened).toEqual(["asked a", "pause", "resume"]);
});
