// Stories: what a model asks for, what the tools make of it, what people answer, and what happens to the agents meanwhile.

import fc from "fast-check";

export const toolNames = [
  "plain",
  "look",
  "once",
  "known",
  "guarded",
  "guardedOnce",
  "asking",
  "client",
  "background",
  "missing",
] as const;
export type ToolName = (typeof toolNames)[number];

/** What a person does with a question; "silence" lets it expire. */
export type AnswerPlan = "approve" | "deny" | "always" | "settle" | "junk" | "silence";

export interface CallPlan {
  readonly tool: ToolName;
  /** "hangs": the first time, until it is stopped. */
  readonly outcome: "ok" | "throws" | "junk" | "hangs";
  /** How long the tool's body takes, in steps of the event loop. */
  readonly ticks: number;
  readonly answer: AnswerPlan;
  /** What is said when the call may have run before. */
  readonly again: AnswerPlan;
}

/** What goes wrong with a model call before it goes well. */
export type ModelFailure = "busy" | "cut" | "refused";

export interface BatchPlan {
  readonly failures: readonly ModelFailure[];
  readonly calls: readonly CallPlan[];
}

export interface LifePlan {
  /** How the agent comes to the open turn; "anew" begins another turn on it. */
  readonly entry: "run" | "recover" | "respond" | "anew";
  readonly questions: "wait" | "park" | "deny" | "default";
  readonly listens: boolean;
  /** Who answers while it runs: the run itself, or another agent on the same store. */
  readonly answersFrom: "run" | "elsewhere";
  /** What happens to it, after so many steps. */
  readonly end: "none" | "interrupt" | "signal" | "park" | "crash";
  readonly after: number;
  /** A crash on this host is known at once; one elsewhere when the lease is over. */
  readonly host: "here" | "elsewhere";
}

export interface Story {
  readonly batches: readonly BatchPlan[];
  readonly lives: readonly LifePlan[];
  readonly pendingWrites: boolean;
  readonly parallelTools: number;
}

const often = <T>(usual: T, ...others: T[]) =>
  fc.oneof(
    { weight: 2 + others.length, arbitrary: fc.constant(usual) },
    { weight: others.length, arbitrary: fc.constantFrom(...others) },
  );

const answers = often<AnswerPlan>("approve", "deny", "always", "settle", "junk", "silence");

const calls = fc.record<CallPlan>({
  tool: fc.constantFrom(...toolNames),
  outcome: often<CallPlan["outcome"]>("ok", "throws", "junk", "hangs"),
  ticks: fc.nat(4),
  answer: answers,
  again: answers,
});

const batches = fc.record<BatchPlan>({
  failures: fc.oneof(
    { weight: 6, arbitrary: fc.constant([]) },
    {
      weight: 1,
      arbitrary: fc.array(fc.constantFrom<ModelFailure>("busy", "cut", "refused"), { minLength: 1, maxLength: 3 }),
    },
  ),
  calls: fc.array(calls, { minLength: 1, maxLength: 4 }),
});

const lives = fc.record<LifePlan>({
  entry: fc.constantFrom("run", "run", "run", "recover", "respond", "anew"),
  questions: fc.constantFrom("wait", "wait", "park", "deny", "default"),
  listens: fc.nat(3).map((n) => n > 0),
  answersFrom: fc.constantFrom("run", "elsewhere"),
  end: fc.constantFrom("none", "interrupt", "signal", "park", "crash", "crash", "crash"),
  after: fc.nat(60),
  host: fc.constantFrom("here", "elsewhere"),
});

export const stories = fc.record<Story>({
  batches: fc.array(batches, { maxLength: 3 }),
  lives: fc.array(lives, { maxLength: 4 }),
  pendingWrites: fc.nat(4).map((n) => n > 0),
  parallelTools: fc.constantFrom(8, 8, 2, 1),
});

/** Calls that only read, each batch of them. */
export const readStories = stories.map((story): Story => {
  const look = (call: CallPlan): CallPlan => ({ ...call, tool: "look" });
  return { ...story, batches: story.batches.map((batch) => ({ ...batch, calls: batch.calls.map(look) })) };
});

/** Calls that must not run twice, allowed whenever somebody is asked, and agents that die one after the other. */
export const onceStories = fc.record<Story>({
  batches: fc.array(
    fc.record<BatchPlan>({
      failures: fc.constant([]),
      calls: fc.array(
        fc.record<CallPlan>({
          tool: fc.constantFrom("once", "guardedOnce", "known"),
          outcome: fc.constantFrom("ok", "throws"),
          ticks: fc.nat(4),
          answer: fc.constantFrom("approve", "approve", "always"),
          again: fc.constantFrom("approve", "approve", "approve", "settle"),
        }),
        { minLength: 1, maxLength: 2 },
      ),
    }),
    { minLength: 1, maxLength: 1 },
  ),
  lives: fc.array(
    fc.record<LifePlan>({
      entry: fc.constantFrom("run", "recover", "respond"),
      questions: fc.constantFrom("wait", "wait", "park"),
      listens: fc.boolean(),
      answersFrom: fc.constant("run"),
      end: fc.constant("crash"),
      after: fc.nat(30),
      host: fc.constantFrom("here", "elsewhere"),
    }),
    { minLength: 1, maxLength: 4 },
  ),
  pendingWrites: fc.boolean(),
  parallelTools: fc.constantFrom(8, 1),
});
