import { expect, test } from "vitest";
import { type BoughEvent, keptEvent, type LiveEvent, liveEvent } from "../events/index.ts";
import { type BranchRef, liveTextBytes } from "../log/store.ts";
import { manualClock } from "../testing/index.ts";
import type { MessageSnapshot } from "../wire/index.ts";
import { LiveReceiver } from "./receiver.ts";
import { LiveSender } from "./sender.ts";

const ref = { sessionId: "s", branchId: "main" };

/** A channel between two sides, on which the test may lose, hold back or read what is sent. */
function givenAir() {
  const ears: ((text: string) => void)[] = [];
  const sent: string[] = [];
  const air = {
    sent,
    isLost: (_text: string) => false,
    passed: Promise.resolve(),
    /** As somebody else would. */
    tell(text: string) {
      for (const ear of ears) ear(text);
    },
  };
  const side = () => {
    const own = new Set<(text: string) => void>();
    return {
      async send(_ref: BranchRef, text: string) {
        await air.passed;
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(liveTextBytes);
        sent.push(text);
        if (!air.isLost(text)) for (const ear of ears) if (!own.has(ear)) ear(text);
      },
      async hear(_ref: BranchRef, onText: (text: string) => void) {
        ears.push(onText);
        own.add(onText);
      },
    };
  };
  return { air, side };
}

const settle = async () => {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
};

/** Runs and readers on one branch; a reader's `text` is what it has of each message. */
function given() {
  const clock = manualClock();
  const { air, side } = givenAir();
  const left = new AbortController();
  const read = () => {
    const steps: (number | LiveEvent)[] = [];
    const wholes: (readonly MessageSnapshot[])[] = [];
    const text: Record<string, string> = {};
    new LiveReceiver({
      ...{ channel: side(), ref, clock, signal: left.signal },
      onStep(step) {
        steps.push(step);
        if (typeof step === "object" && step.type === "text-delta") {
          text[step.messageId] = (text[step.messageId] ?? "") + step.text;
        }
      },
      onMessages(whole) {
        wholes.push(whole);
        for (const { messageId, text: all } of whole) text[messageId] = all;
      },
    });
    return { steps, wholes, text };
  };
  const run = (runId: string) => {
    const sender = new LiveSender({ channel: side(), ref, runId, clock });
    const routing = { ...ref, runId, turnId: "t", agent: { chain: ["a"], depth: 0 } };
    const show = (event: BoughEvent) => sender.note(event);
    return {
      sender,
      say: (said: string, messageId = "m") =>
        show(liveEvent({ type: "text-delta", messageId, text: said }, { ...routing, at: clock.now() })),
      emit: (data: unknown) =>
        show(liveEvent({ type: "custom-emit", name: "n", data } as never, { ...routing, at: 1 })),
      fact: (seq: number, id = `f${seq}`) =>
        show(
          keptEvent({ type: "message.added", seq, id, at: 1, role: "user", content: [] } as never, { ...ref, runId }),
        ),
      end: () => show(liveEvent({ type: "run-end", status: "completed" }, { ...routing, at: 1 })),
    };
  };
  /** Lets time pass, and what waits for it happen. */
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 50) {
      await settle();
      clock.advance(50);
    }
    await settle();
  };
  return { air, read, run, pass, left };
}

test("a reader that comes in the middle of a message has all of it, and then what follows", async () => {
  const { run, read, pass } = given();
  const { say, fact } = run("r1");
  fact(3);
  for (const word of ["Once ", "upon "]) say(word);
  await pass(200);
  const { text, wholes } = read();
  await pass(200);
  const address = { ...ref, runId: "r1", turnId: "t", messageId: "m" };
  expect(wholes.at(-1)).toEqual([{ ...address, text: "Once upon ", reasoning: "", toolInputs: [] }]);
  for (const word of ["a ", "time."]) say(word);
  await pass(200);
  expect(text.m).toBe("Once upon a time.");
});

test("Sender-2: without a reader a run says one thing, and a short one nothing", async () => {
  const { run, pass, air } = given();
  const short = run("short");
  short.say("Hi");
  short.end();
  short.sender.close();
  await pass(200);
  expect(air.sent).toEqual([]);
  const { say } = run("long");
  for (let i = 0; i < 100; i++) {
    say("word ");
    await pass(50);
  }
  expect(air.sent.length).toBe(1);
});

test("Sender-2, Receiver-6: nobody is told any more after the reader left, and nobody asks while nothing runs", async () => {
  const { run, read, pass, air, left } = given();
  read();
  await pass(20_000);
  expect(air.sent.length).toBe(1);
  const { say } = run("r1");
  await pass(400);
  say("Hi");
  await pass(20_000);
  const before = air.sent.length;
  left.abort();
  await pass(13_000);
  const after = air.sent.length;
  for (let i = 0; i < 10; i++) {
    say("more ");
    await pass(100);
  }
  expect(after - before).toBeLessThanOrEqual(1);
  expect(air.sent.length).toBe(after);
});

test("a quiet run is still followed a minute later", async () => {
  const { run, read, pass } = given();
  const { text } = read();
  const { say } = run("r1");
  say("Thinking");
  await pass(60_000);
  say(", done.");
  await pass(100);
  expect(text.m).toBe("Thinking, done.");
});

test("Sender-3: facts are named between the live events where they stood", async () => {
  const { run, read, pass } = given();
  const { steps } = read();
  const { say, fact, end, sender } = run("r1");
  await pass(400);
  steps.length = 0;
  say("a");
  say("b");
  fact(4, "m");
  say("c", "m2");
  fact(5, "m2");
  end();
  sender.close();
  await pass(100);
  expect(steps.map((step) => (typeof step === "number" ? step : "text" in step ? step.text : step.type))).toEqual([
    ...["ab", 4, "c", 5, "run-end"],
  ]);
  const live = steps.filter((step) => typeof step === "object");
  for (const event of live) expect(event).toMatchObject({ ...ref, runId: "r1", turnId: "t", agent: { chain: ["a"] } });
});

test("Receiver-4: what is lost on the way is told anew, and every letter arrives once", async () => {
  const { run, read, pass, air } = given();
  const { text, wholes } = read();
  const { say } = run("r1");
  await pass(400);
  let said = "";
  for (let i = 0; i < 60; i++) {
    air.isLost = () => i % 7 === 3;
    said += `${i},`;
    say(`${i},`);
    await pass(100);
  }
  air.isLost = () => false;
  await pass(2000);
  say("end");
  await pass(2000);
  expect(text.m).toBe(`${said}end`);
  expect(wholes.length).toBeGreaterThan(3);
});

test("Receiver-4: a reader whose wishes were not heard for a while misses nothing of what was said meanwhile", async () => {
  const { run, read, pass, air } = given();
  const { text } = read();
  const { say } = run("r1");
  await pass(400);
  air.isLost = (packet) => packet.includes('"want"');
  let said = "";
  for (let second = 0; second < 30; second++) {
    if (second === 14) air.isLost = () => false;
    said += `${second},`;
    say(`${second},`);
    await pass(1000);
  }
  expect(text.m).toBe(said);
});

test("Sender-1: a way that stands still holds nothing up and keeps little; the reader sees the gap and has everything again", async () => {
  const { run, read, pass, air } = given();
  const { text } = read();
  const { say, fact } = run("r1");
  await pass(400);
  let open = () => {};
  air.passed = new Promise((resolve) => {
    open = resolve;
  });
  for (let i = 0; i < 1000; i++) say("x".repeat(200));
  fact(2, "m");
  for (let i = 0; i < 100; i++) say("y".repeat(100), "m2");
  await pass(1000);
  const before = air.sent.length;
  open();
  await pass(2000);
  expect(air.sent.length - before).toBeLessThan(20);
  say("!", "m2");
  await pass(500);
  expect(text.m2).toBe(`${"y".repeat(10_000)}!`);
});

test("a long text is cut, also inside a character; what can't be cut is left out alone", async () => {
  const { run, read, pass } = given();
  const { text, steps } = read();
  const { say, emit } = run("r1");
  await pass(400);
  const long = `.${"😀\u0000é".repeat(2000)}`;
  say(long);
  emit("x".repeat(liveTextBytes));
  emit(1n);
  emit("fits");
  await pass(500);
  expect(text.m).toBe(long);
  expect(steps.flatMap((step) => (typeof step === "object" && step.type === "custom-emit" ? [step.data] : []))).toEqual(
    ["fits"],
  );
});

test("Receiver-5: the run that takes over is followed; what the one before still says is not heard", async () => {
  const { run, read, pass } = given();
  const { text, wholes } = read();
  const first = run("r1");
  first.say("From the first", "m1");
  await pass(400);
  const second = run("r2");
  second.say("From the second", "m2");
  await pass(400);
  first.say(", who woke up", "m1");
  second.say(".", "m2");
  await pass(400);
  expect(text).toEqual({ m1: "From the first", m2: "From the second." });
  expect(wholes.at(-1)!.map(({ messageId }) => messageId)).toEqual(["m2"]);
});

test("two readers come at different times and both have everything, each once", async () => {
  const { run, read, pass } = given();
  const early = read();
  const { say } = run("r1");
  say("1");
  await pass(400);
  say("2");
  const late = read();
  say("3");
  await pass(400);
  say("4");
  await pass(400);
  expect([early.text, late.text]).toEqual([{ m: "1234" }, { m: "1234" }]);
  expect([early.wholes.flat().length, late.wholes.flat().length]).toEqual([1, 1]);
});

test("texts that are no packets, or say what no event is, are nobody's loss", async () => {
  const { run, read, pass, air } = given();
  const { text, steps } = read();
  const { say } = run("r1");
  await pass(400);
  steps.length = 0;
  const strangers = [
    ...["", "x", "null", "[]", "{}", '{"v":2,"want":"begin"}', '{"v":1,"want":"everything"}'],
    '{"v":1,"run":"","n":1,"of":{},"steps":[]}',
    '{"v":1,"run":"r1","n":-1,"of":{},"steps":[]}',
    '{"v":1,"run":"r1","n":"2","of":{},"steps":{}}',
  ];
  for (const stranger of strangers) air.tell(stranger);
  say("Still here.");
  await pass(200);
  expect(text.m).toBe("Still here.");
  const wrong = [{ type: "text-delta" }, { type: "no-such", at: 1 }, { type: "text-delta", at: 1, messageId: 1 }, null];
  const right = { type: "custom-emit", at: 1, name: "n", data: 1 };
  const whole = { v: 1, run: "r2", n: 1, of: {}, part: [1, 1], steps: [] };
  air.tell(JSON.stringify(whole));
  air.tell(JSON.stringify({ ...whole, n: 2, part: undefined, steps: [...wrong, right, -1, "x", 7], extra: 1 }));
  await settle();
  expect(steps.slice(-2)).toEqual([expect.objectContaining({ ...right, ...ref, runId: "r2" }), 7]);
});
