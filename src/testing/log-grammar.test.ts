import { describe, expect, test } from "vitest";
import type { Draft } from "../events/index.ts";
import { codec } from "../events/index.ts";
import { checkGrammar } from "./log-grammar.ts";

type Short = { type: Draft["type"]; id?: string } & Record<string, unknown>;

function check(...facts: Short[]): string[] {
  const log = facts.map((fact, i) => {
    const draft = { id: `f${i + 1}`, at: 1, ...fact } as Draft;
    return { ...codec.encode(draft), seq: i + 1 };
  });
  return checkGrammar(log);
}

const begun: Short = { type: "turn.started", id: "t" };
const turnId = "t";
const call = { type: "tool-call", toolCallId: "c", toolName: "add", input: {} };
const asks: Short = { type: "message.added", turnId, role: "assistant", content: [call] };
const opened: Short = { type: "interaction.opened", id: "q", turnId, kind: "permission", callId: "c", request: {} };
const answered: Short = { type: "interaction.answered", interactionId: "q", answer: {} };
const expired: Short = { type: "interaction.expired", interactionId: "q" };
const messages = [{ role: "user", content: "x" }];
const committed: Short = { type: "turn.committed", turnId };

const takenTwice: Short[] = [
  { type: "turn.started", id: "t", inputs: ["i"] },
  committed,
  { type: "turn.started", id: "u", inputs: ["i"] },
];

describe("checkGrammar", () => {
  test("finds nothing wrong with a turn that was asked about, resumed and committed", () => {
    const returned: Short = {
      type: "tool.returned",
      turnId,
      callId: "c",
      toolName: "add",
      output: { type: "text", value: "" },
    };
    const started: Short = { type: "tool.started", turnId, callIds: ["c"] };
    const task: Short = { type: "task.started", id: "k", turnId, name: "later", callId: "c" };
    const ended: Short = { type: "task.ended", taskId: "k", status: "completed" };
    const resumed: Short = { type: "turn.resumed", turnId };
    expect(check(begun, asks, opened, answered, resumed, started, task, returned, committed, ended)).toEqual([]);
  });

  test("lets an input be queued, edited and taken, by a turn or by its messages", () => {
    const queued = (id: string): Short => ({ type: "input.queued", id, messages, when: "steer" });
    const edited: Short = { type: "input.edited", inputId: "i", when: "idle" };
    const taking: Short = { type: "turn.started", id: "t", inputs: ["i"] };
    const message = (inputId: string): Short => ({
      type: "message.added",
      turnId,
      role: "user",
      content: "x",
      inputId,
    });
    const withdrawn: Short = { type: "input.withdrawn", inputId: "k" };
    expect(
      check(queued("i"), edited, taking, message("i"), queued("j"), message("j"), queued("k"), committed, withdrawn),
    ).toEqual([]);
  });

  test("lets a step begin, be tried later and return once, with a signal that came before", () => {
    const steps: Short[] = [
      { type: "signal.received", id: "s", name: "paid" },
      begun,
      { type: "step.started", turnId, key: "a", until: 5 },
      { type: "turn.parked", turnId, reason: "asleep", asleep: true, until: 5 },
      { type: "turn.resumed", turnId },
      { type: "step.started", turnId, key: "a", until: 9 },
      { type: "step.returned", turnId, key: "a", signalId: "s" },
      { type: "step.skipped", turnId, key: "b", why: "condition" },
    ];
    expect(check(...steps, committed)).toEqual([]);
    expect(check(...steps, { type: "step.returned", turnId, key: "a" })).toEqual([
      "fact 9 (step.returned): step a has its result",
    ]);
    expect(check(...steps, { type: "step.started", turnId, key: "b" })).toEqual([
      "fact 9 (step.started): step b has its result",
    ]);
    expect(check(...steps, { type: "step.returned", turnId, key: "c", signalId: "s" })).toEqual([
      "fact 9 (step.returned): signal s was taken before",
    ]);
    expect(check(begun, { type: "step.returned", turnId, key: "c", signalId: "s" })).toEqual([
      "fact 2 (step.returned): signal s was never received",
    ]);
    expect(check({ type: "step.returned", turnId, key: "c" })).toEqual(["fact 1 (step.returned): turn t is not open"]);
  });

  test("lets an expiry come after the answer, since nobody looks before it is written", () => {
    expect(check(begun, asks, opened, answered, expired, committed)).toEqual([]);
  });

  test("passes over what is no fact", () => {
    expect(checkGrammar([{ id: "x", seq: 1, data: "no fact" }])).toEqual([]);
  });

  test("saves with a turn those that wait before it", () => {
    const staged: Short = { type: "turn.staged", turnId };
    const next: Short = { type: "turn.started", id: "u" };
    expect(check(begun, staged, next, { type: "turn.committed", turnId: "u" })).toEqual([]);
    const late: Short = { type: "turn.committed", turnId: "u" };
    expect(check(begun, staged, next, late, committed)).toEqual([expect.stringMatching(/^fact 5 .*t is not open/)]);
  });

  const wrong: [string, Short[], RegExp][] = [
    ["a turn that begins inside another", [begun, { type: "turn.started", id: "u" }], /turn t is still open/],
    [
      "a turn that is resumed after its end",
      [begun, committed, { type: "turn.resumed", turnId }],
      /turn t is not open/,
    ],
    ["a message of a closed turn", [begun, committed, asks], /turn t is not open/],
    ["a turn that closes twice", [begun, committed, committed], /turn t is not open/],
    [
      "a grant for a call that nobody asked for",
      [begun, { type: "permission.granted", turnId, callId: "c", toolName: "t", how: "mode" }],
      /no call c/,
    ],
    ["a start of a call that nobody asked for", [begun, { type: "tool.started", turnId, callIds: ["c"] }], /no call c/],
    ["a question about a call that nobody asked for", [begun, opened], /no call c/],
    ["an answer to no question", [begun, answered], /q was never opened/],
    [
      "an input that is taken twice",
      [{ type: "input.queued", id: "i", messages, when: "idle" }, ...takenTwice],
      /turn t took input i before/,
    ],
    [
      "an input that is taken after it was withdrawn",
      [
        { type: "input.queued", id: "i", messages, when: "idle" },
        { type: "input.withdrawn", inputId: "i" },
        { type: "turn.started", id: "t", inputs: ["i"] },
      ],
      /input i was withdrawn/,
    ],
    ["an edit of an input that was never queued", [{ type: "input.edited", inputId: "i" }], /input i was never queued/],
    ["a second answer", [begun, asks, opened, answered, answered], /q was answered before/],
    ["an answer after the expiry", [begun, asks, opened, expired, answered], /q was expired before/],
    ["a second expiry", [begun, asks, opened, expired, expired], /q was expired before/],
    ["an answer after the turn's end", [begun, asks, opened, committed, answered], /t of interaction q is not open/],
    ["an end of no task", [{ type: "task.ended", taskId: "k", status: "failed" }], /task k never began/],
    [
      "a second end of a task",
      [
        begun,
        { type: "task.started", id: "k", turnId, name: "later" },
        { type: "task.ended", taskId: "k", status: "completed" },
        { type: "task.ended", taskId: "k", status: "failed" },
      ],
      /task k has ended before/,
    ],
  ];
  test.each(wrong)("finds %s", (_, facts, problem) => {
    expect(check(...facts)).toContainEqual(expect.stringMatching(problem));
  });
});
