import { describe, expect, test } from "vitest";
import { systemClock } from "../../base/clock.ts";
import type { Draft, Fact } from "../../events/index.ts";
import type { Question } from "../../middleware/index.ts";
import { manualClock, seededIds } from "../../testing/index.ts";
import { Parked } from "../endings.ts";
import { Questions, type QuestionsOptions } from "./questions.ts";

/** A log of one turn that shows what is written in order, and what another process writes when it is looked at. */
function aLog() {
  const facts: Fact[] = [];
  let shown = 0;
  let isListening = false;
  let asking: Questions | undefined;
  const ids = seededIds("fact");
  const show = () => {
    for (; shown < facts.length; shown++) asking?.see(facts[shown]!);
  };
  const add = (draft: object) => facts.push({ seq: facts.length + 1, ...draft } as Fact);
  return {
    facts,
    /** A process that takes the turn up, or a later one. */
    start(options: Partial<QuestionsOptions> = {}) {
      shown = 0;
      isListening = false;
      const started = new Questions({
        turnId: "turn",
        clock: manualClock(),
        ids,
        answerMs: 1000,
        signal: new AbortController().signal,
        leaving: new AbortController().signal,
        policy: () => "wait",
        write: async (...drafts: Draft[]) => {
          await Promise.resolve();
          for (const draft of drafts) add(draft);
          show();
        },
        listen: () => {
          isListening = true;
          show();
        },
        ...options,
      });
      asking = started;
      show();
      return started;
    },
    /** From another process. */
    answer(interactionId: string, answer: object) {
      add({ type: "interaction.answered", id: ids.next(), at: 0, interactionId, answer });
      if (isListening) show();
    },
    of: <Type extends Fact["type"]>(type: Type) => facts.filter((fact) => fact.type === type) as Fact<Type>[],
  };
}

const question: Question = {
  kind: "permission",
  callId: "call-1",
  request: { toolName: "remove", input: { path: "x" } },
};

/** Lets everything that is ready happen. */
async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve();
}

describe("a question", () => {
  test("is a fact with what it shows, and waits for an answer that another process writes", async () => {
    const log = aLog();
    const answer = log.start().ask(question);
    await settle();
    expect(log.facts).toMatchObject([{ type: "interaction.opened", turnId: "turn", ...question }]);
    log.answer(log.facts[0]!.id, { approved: true });
    const { id: interactionId } = log.facts[0]!;
    const { at } = log.facts[1]!;
    expect(await answer).toEqual({ answered: true, answer: { approved: true }, interactionId, at });
    expect(log.facts).toHaveLength(2);
  });

  test("that two ask at the same moment is one interaction, and both get its answer", async () => {
    const log = aLog();
    const asking = log.start();
    const answers = [asking.ask(question), asking.ask({ ...question })];
    await settle();
    answers.push(asking.ask(question));
    expect(log.of("interaction.opened")).toHaveLength(1);
    log.answer(log.facts[0]!.id, { approved: true });
    expect(await Promise.all(answers)).toMatchObject(Array(3).fill({ answered: true, answer: { approved: true } }));
  });

  test("that two wait for expires once, for both", async () => {
    const log = aLog();
    const clock = manualClock();
    const asking = log.start({ clock });
    const answers = [asking.ask(question), asking.ask(question)];
    await settle();
    clock.advance(1000);
    expect(await Promise.all(answers)).toEqual(Array(2).fill({ answered: false, reason: "expired" }));
    expect(log.of("interaction.expired")).toHaveLength(1);
  });

  test("that is left for others is settled when it is asked again after its time", async () => {
    const log = aLog();
    const clock = manualClock();
    const leaving: Partial<QuestionsOptions> = { clock, policy: () => "park" };
    const limited = { ...question, expiresInMs: 1000 };
    await expect(log.start(leaving).ask(limited)).rejects.toBeInstanceOf(Parked);
    clock.advance(999);
    await expect(log.start(leaving).ask(limited)).rejects.toBeInstanceOf(Parked);
    clock.advance(1);
    expect(await log.start(leaving).ask(limited)).toEqual({ answered: false, reason: "expired" });
    expect(log.of("interaction.opened")).toHaveLength(1);
  });

  test("keeps its id and its answer for the process that takes the turn up", async () => {
    const log = aLog();
    void log.start().ask(question);
    await settle();
    const again = log.start().ask(question);
    await settle();
    expect(log.of("interaction.opened")).toHaveLength(1);
    log.answer(log.facts[0]!.id, { approved: false });
    expect(await again).toMatchObject({ answered: true });
    expect(await log.start().ask(question)).toMatchObject({ answered: true, answer: { approved: false } });
    expect(log.facts).toHaveLength(2);
  });

  test("that shows something else than before is a new one: an answer holds for what was shown", async () => {
    const log = aLog();
    void log.start().ask(question);
    await settle();
    const other = { ...question, request: { toolName: "remove", input: { path: "y" } } };
    const answer = log.start().ask(other);
    await settle();
    const [first, second] = log.of("interaction.opened");
    expect(second).toMatchObject({ callId: "call-1", request: other.request });
    expect(log.of("interaction.expired")).toMatchObject([{ interactionId: first!.id, reason: "changed" }]);
    log.answer(first!.id, { approved: true });
    await settle();
    log.answer(second!.id, { approved: false });
    expect(await answer).toMatchObject({ answer: { approved: false } });
  });

  test("about no call is the same one by its key, whatever it shows by then", async () => {
    const log = aLog();
    const asked = (iteration: number): Question => ({ kind: "continuation", key: "2", request: { iteration } });
    void log.start().ask(asked(3));
    await settle();
    log.answer(log.facts[0]!.id, { approved: true });
    expect(await log.start().ask(asked(5))).toMatchObject({ answered: true });
    expect(log.of("interaction.opened")).toHaveLength(1);
  });

  test("is answered with nothing when nobody is there, without a fact; one from before is closed by that", async () => {
    const log = aLog();
    expect(await log.start({ policy: () => "deny" }).ask(question)).toEqual({ answered: false, reason: "nobody" });
    expect(log.facts).toEqual([]);
    void log.start().ask(question);
    await settle();
    expect(await log.start({ policy: () => "deny" }).ask(question)).toEqual({ answered: false, reason: "nobody" });
    expect(log.of("interaction.expired")).toMatchObject([{ reason: "nobody" }]);
  });

  test("is opened and then left by a run that parks; it has no end unless that is asked for", async () => {
    const log = aLog();
    const asking = log.start({ policy: () => "park", answerMs: undefined });
    await expect(asking.ask(question)).rejects.toBeInstanceOf(Parked);
    await expect(asking.ask({ ...question, key: "2", expiresInMs: 50 })).rejects.toBeInstanceOf(Parked);
    const [first, second] = log.of("interaction.opened");
    expect(first).not.toHaveProperty("expiresAt");
    expect(second!.expiresAt).toBe(second!.at + 50);
    await expect(log.start({ policy: () => "park" }).ask({ ...question, key: "3" })).rejects.toBeInstanceOf(Parked);
    const third = log.of("interaction.opened")[2]!;
    expect(third.expiresAt).toBe(third.at + 1000);
  });

  test("that can't be stored is refused to whoever asks, and nobody else", async () => {
    const log = aLog();
    const asking = log.start();
    const bad = { ...question, callId: "call-2", request: { at: Number.NaN } };
    const [good, refused] = [asking.ask(question), asking.ask(bad)];
    await expect(refused).rejects.toMatchObject({ code: "invalid_argument" });
    await settle();
    log.answer(log.facts[0]!.id, { approved: true });
    expect(await good).toMatchObject({ answered: true });
  });
});

describe("the end of a question", () => {
  test("of an answer and an expiry, the first in the log counts", async () => {
    const log = aLog();
    const clock = manualClock();
    const answer = log.start({ clock, listen: () => {} }).ask(question);
    await settle();
    log.answer(log.facts[0]!.id, { approved: true });
    clock.advance(1000);
    expect(await answer).toMatchObject({ answered: true });
    expect(log.facts.map(({ type }) => type)).toEqual([
      "interaction.opened",
      "interaction.answered",
      "interaction.expired",
    ]);
    expect(await log.start().ask(question)).toMatchObject({ answered: true });
  });

  test("that is over before the turn is taken up again comes at once", async () => {
    const log = aLog();
    const clock = manualClock();
    void log.start({ clock }).ask(question);
    await settle();
    const later = manualClock(clock.now() + 5000);
    expect(await log.start({ clock: later }).ask(question)).toEqual({ answered: false, reason: "expired" });
  });

  test.each([
    ["more than a timer can hold", 2 ** 31 + 1000],
    ["no end at all", Number.POSITIVE_INFINITY],
    ["a part of a millisecond", 60_000.5],
  ])("with %s, the answer is waited for", async (_, answerMs) => {
    const log = aLog();
    const over = new AbortController();
    const answer = log.start({ clock: systemClock, answerMs, signal: over.signal }).ask(question);
    await new Promise((resolve) => setTimeout(resolve, 20));
    log.answer(log.facts[0]!.id, { approved: true });
    expect(await answer).toMatchObject({ answered: true });
    expect(log.of("interaction.opened")[0]!.expiresAt ?? 0).toSatisfy(Number.isInteger);
    over.abort();
  });

  test("is the run's own, when the run is stopped: everybody who waits is told", async () => {
    const log = aLog();
    const stop = new AbortController();
    const asking = log.start({ signal: stop.signal });
    const waiting = [asking.ask(question), asking.ask(question)];
    await settle();
    stop.abort("stopped");
    for (const each of waiting) await expect(each).rejects.toBe("stopped");
    expect(log.facts).toHaveLength(1);
  });
});
