// What the suites share: an agent on a store, a clock and ids that a test controls, and what every test must leave behind:
// logs without a gap, and transcripts that any provider would take.

import { expect, onTestFinished } from "vitest";
import { z } from "zod";
import { BoughError, type ErrorCode } from "../../src/base/errors.ts";
import { callsOf, type Message, type ToolResultPart, textOf } from "../../src/events/index.ts";
import {
  type Agent,
  type AgentOptions,
  type BoughEvent,
  createAgent,
  defineTool,
  type Run,
  type Store,
} from "../../src/index.ts";
import type { PromptMessage } from "../../src/models/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import {
  checkLogs,
  type ManualClock,
  manualClock,
  type Script,
  type ScriptedModel,
  scriptedModel,
  seededIds,
} from "../../src/testing/index.ts";

export interface Given {
  readonly agent: Agent;
  readonly store: Store;
  readonly clock: ManualClock;
  readonly model: ScriptedModel;
  /** Another agent on the same store with nothing cached, as after a restart. */
  again(options?: Partial<AgentOptions> & { script?: Script }): Agent;
}

export const s = { sessionId: "s" };
export const main = { sessionId: "s", branchId: "main" };

/** An agent with a scripted model and a session "s". What it leaves in the store is checked when the test is over. */
export async function given(script: Script, options: Partial<AgentOptions> = {}): Promise<Given> {
  const clock = manualClock();
  const { store: own = memoryStore({ clock }), ...more } = options;
  if (typeof own === "string") throw new Error("These suites look into a store object.");
  const store = unclosed(own);
  const model = scriptedModel(script);
  const agent = createAgent({ model, store, clock, ids: seededIds("id"), random: () => 0, ...more });
  await agent.createSession("s");
  let others = 0;
  onTestFinished(async () => {
    expect(await checkLogs(store)).toEqual([]);
  });
  return {
    agent,
    store,
    clock,
    model,
    again({ script: other = script, ...changed } = {}) {
      const ids = seededIds(`again${++others}`);
      return createAgent({ model: scriptedModel(other), store, clock, ids, random: () => 0, ...more, ...changed });
    },
  };
}

/** A store that outlives the agents on it. */
function unclosed(store: Store): Store {
  return new Proxy(store, {
    get(target, name: keyof Store) {
      const value = target[name];
      if (name === "close") return async () => {};
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** A store that says how often it was asked for what. */
export function counted(store: Store, counts: Record<string, number>): Store {
  return new Proxy(store, {
    get(target, name: keyof Store) {
      const method = target[name];
      if (typeof method !== "function") return method;
      return (...args: unknown[]) => {
        counts[name] = (counts[name] ?? 0) + 1;
        return Reflect.apply(method, target, args);
      };
    },
  });
}

/** Reads a run to its end. */
export async function eventsOf(run: Run, onEvent?: (event: BoughEvent) => unknown): Promise<BoughEvent[]> {
  const events: BoughEvent[] = [];
  for await (const event of run) {
    events.push(event);
    await onEvent?.(event);
  }
  return events;
}

export function ofType<Type extends BoughEvent["type"]>(
  events: readonly BoughEvent[],
  type: Type,
): Extract<BoughEvent, { type: Type }>[] {
  return events.filter((event): event is Extract<BoughEvent, { type: Type }> => event.type === type);
}

/** The types of the facts on a branch, oldest first, without the one it began with. */
export async function factTypes(agent: Agent, scope = main): Promise<string[]> {
  return (await agent.events(scope, { limit: 1000 })).map(({ type }) => type).slice(1);
}

/** A prompt that every provider takes: each call has exactly one result, in the very next message; nothing is empty. */
export function expectLegal(prompt: readonly (PromptMessage | Message)[]): void {
  prompt.forEach((message, i) => {
    expect(message.content.length, `message ${i} is empty`).toBeGreaterThan(0);
    const calls = callsOf(message).map(({ toolCallId }) => toolCallId);
    if (message.role === "tool") expect(prompt[i - 1]?.role, `message ${i} answers nobody`).toBe("assistant");
    if (calls.length === 0) return;
    const next = prompt[i + 1];
    expect(next?.role, `the calls of message ${i} have no results`).toBe("tool");
    expect(resultsOf(next!).map(({ toolCallId }) => toolCallId)).toEqual(calls);
  });
}

function resultsOf({ content }: Pick<Message, "content">): ToolResultPart[] {
  return typeof content === "string" ? [] : content.filter((part) => part.type === "tool-result");
}

/** Each message as "role: what it says". */
export function said(messages: readonly (Message | PromptMessage)[]): string[] {
  return messages.map((message) => {
    const calls = callsOf(message).map(({ toolName }) => `${toolName}()`);
    const results = resultsOf(message).map(({ output }) => JSON.stringify(output.value ?? output));
    return `${message.role}: ${[textOf(message), ...calls, ...results].filter((each) => each !== "").join(" ")}`;
  });
}

/** The promise must be refused with this code and, where given, at least this data. */
export async function refused(promise: Promise<unknown>, code: ErrorCode, data: object = {}): Promise<BoughError> {
  const outcome = await promise.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  if ("value" in outcome) expect.fail(`expected ${code}, but it resolved with ${JSON.stringify(outcome.value)}`);
  if (!BoughError.is(outcome.error)) throw outcome.error;
  expect(outcome.error.code, outcome.error.message).toBe(code);
  expect(outcome.error.data).toMatchObject(data);
  return outcome.error;
}

/** Lets everything happen that does not wait for the clock or the outside. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** Waits until a condition holds that something else brings about. */
export async function until(condition: () => boolean): Promise<void> {
  // By time, since what is waited for may be a module that is loaded while the machine is busy.
  for (const end = Date.now() + 10_000; Date.now() < end; ) {
    if (condition()) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect.fail(`waited in vain for ${condition}`);
}

/** A promise and the function that resolves it. */
export function gate(): { readonly passed: Promise<void>; open(): void } {
  let open = () => {};
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open: () => open() };
}

export const add = defineTool({
  description: "Adds.",
  input: z.object({ a: z.number(), b: z.number() }),
  execute: ({ a, b }) => a + b,
});

/** A model's wish to add. */
export const adding = (a = 1, b = 2) => ({ calls: [{ name: "add", input: { a, b } }] });

/** A tool that begins and never ends, whatever its signal says. */
export function endless(begun: { count: number } = { count: 0 }) {
  return defineTool({
    description: "Never ends.",
    input: z.object({}),
    execute: () => {
      begun.count++;
      return new Promise<never>(() => {});
    },
  });
}

/** Lets time pass in small steps, with everything happening that its passing brings about. */
export async function pass(clock: { advance(ms: number): void }, ms: number, stepMs = 250): Promise<void> {
  for (let left = ms; left > 0; left -= stepMs) {
    clock.advance(Math.min(stepMs, left));
    await settle();
  }
}
