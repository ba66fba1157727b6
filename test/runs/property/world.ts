// The world of a story: one store, one clock, and what really happened. It outlives the agents that work in it.
//   W1. A dead agent does nothing any more: its store, its model and its tools never answer.
//   W2. What is wrong is noted when it happens, and reported when the agent's life is over.

import type { Agent } from "../../../src/agent/index.ts";
import { createAgent } from "../../../src/agent/index.ts";
import { codec, type Fact, type ToolCallPart } from "../../../src/events/index.ts";
import type { AppendOptions, BranchRef, NewEvent, Store } from "../../../src/log/store.ts";
import type { PromptMessage } from "../../../src/models/index.ts";
import { openSessions } from "../../../src/sessions/index.ts";
import { memoryStore } from "../../../src/stores/memory/index.ts";
import {
  type ManualClock,
  manualClock,
  type ScriptedAnswer,
  scriptedModel,
  seededIds,
} from "../../../src/testing/index.ts";
import type { CallPlan, Story } from "./story.ts";
import { toolsOf } from "./tools.ts";

export const ref = { sessionId: "s", branchId: "main" };
export const leaseMs = 30_000;
export const answerMs = 60_000;

/** One agent's time in the world. */
export class Life {
  readonly number: number;
  /** What happens to it, and how many steps are left until then. */
  readonly #end: () => void;
  #stepsLeft: number;
  #die!: () => void;
  isDead = false;
  /** Resolves when it dies. */
  readonly death = new Promise<void>((resolve) => {
    this.#die = resolve;
  });
  /** The last one has no tools that hang. */
  readonly isLast: boolean;
  /** Calls whose tools hang right now. */
  readonly hanging = new Set<string>();
  readonly begun = new Set<string>();
  /** The newest fact its run wrote. */
  lastSeq = 0;

  constructor(options: { number: number; steps: number; end: () => void; isLast: boolean }) {
    this.number = options.number;
    this.#stepsLeft = options.steps;
    this.#end = options.end;
    this.isLast = options.isLast;
  }

  die(): void {
    this.isDead = true;
    this.#die();
  }

  /** Something happens in it. */
  step(): void {
    if (this.#stepsLeft-- === 0) this.#end();
  }
}

const never = new Promise<never>(() => {});

export class World {
  readonly clock: ManualClock = manualClock();
  readonly store: Store = memoryStore({ clock: this.clock });
  readonly story: Story;
  /** The log, as it was written. */
  readonly facts: Fact[] = [];
  readonly problems: string[] = [];
  /** Calls by id: those the log has asked for, those that have their results. */
  readonly asked = new Map<string, ToolCallPart>();
  readonly acked = new Set<string>();
  /** How often a tool's body began, and how often it had its effect. */
  readonly begins = new Map<string, number>();
  readonly effects = new Map<string, number>();
  /** Grows with whatever happens: tells when nothing does. */
  activity = 0;
  readonly #failed = new Map<string, number>();
  #agents = 0;

  private constructor(story: Story) {
    this.story = story;
  }

  static async of(story: Story): Promise<World> {
    const world = new World(story);
    const sessions = await openSessions(world.store, { clock: world.clock, ids: seededIds("first") });
    await sessions.createSession(ref.sessionId);
    for (const event of await world.store.read(ref)) world.#note(codec.decode(event) as Fact);
    return world;
  }

  agent(life: Life, owner: string): Agent {
    const { pendingWrites, parallelTools } = this.story;
    return createAgent({
      model: scriptedModel((prompt) => this.#reply(life, prompt)),
      tools: toolsOf(this, life),
      store: this.#storeFor(life),
      // Runs are given up on in the middle of a story, so nothing reads how they end.
      logger: { warn: () => {} },
      clock: this.clock,
      ids: seededIds(`a${++this.#agents}`),
      owner,
      leaseMs,
      random: () => 0.5,
      telemetry: false,
      limits: { answerMs, parallelTools },
      durable: { checkpoints: "manual", pendingWrites },
    });
  }

  problem(text: string): void {
    this.problems.push(text);
  }

  planOf({ input }: { readonly input: unknown }): CallPlan {
    const { i, j } = input as { i: number; j: number };
    return this.story.batches[i]!.calls[j]!;
  }

  /** Whether all calls of its batch only read, and so may begin before the log has them. */
  isOnlyRead({ input }: { readonly input: unknown }): boolean {
    return this.story.batches[(input as { i: number }).i]!.calls.every(({ tool }) => tool === "look");
  }

  /** The facts about a question of a call that were written so far. */
  approvals(callId: string, kind: "first" | "again"): Fact<"interaction.answered">[] {
    const opened = this.facts.filter((fact) => fact.type === "interaction.opened");
    const about = opened.filter((fact) => {
      const isAgain = fact.request.again === true;
      return fact.callId === callId && fact.kind === "permission" && isAgain === (kind === "again");
    });
    const ids = new Set(about.map(({ id }) => id));
    return this.facts.filter(
      (fact): fact is Fact<"interaction.answered"> =>
        fact.type === "interaction.answered" && ids.has(fact.interactionId) && fact.answer.approved === true,
    );
  }

  /** Whether every call of a tool was allowed for the session. */
  isAllowedForGood(toolName: string): boolean {
    return this.facts.some((fact) => {
      if (fact.type !== "interaction.answered" || fact.answer.choice !== "always") return false;
      const question = this.facts.find(({ id }) => id === fact.interactionId) as Fact<"interaction.opened">;
      return fact.answer.approved === true && question.request.toolName === toolName;
    });
  }

  async #reply(life: Life, prompt: readonly PromptMessage[]): Promise<ScriptedAnswer> {
    this.activity++;
    life.step();
    if (life.isDead) return never;
    const from = prompt.findLastIndex(({ role }) => role === "user");
    this.#checkPrompt(prompt, from);
    const turn = prompt.slice(from);
    const i = turn.filter(({ role }) => role === "assistant").length;
    const batch = this.story.batches[i];
    if (!batch) return { text: "The end." };
    const key = `${from}.${i}`;
    const failure = batch.failures[this.#failed.get(key) ?? 0];
    if (failure) {
      this.#failed.set(key, (this.#failed.get(key) ?? 0) + 1);
      if (failure === "cut") return { text: "I was about to", cutAfter: 4 };
      return { error: Object.assign(new Error(failure), { isRetryable: failure === "busy", statusCode: 503 }) };
    }
    return {
      text: `Step ${i}.`,
      calls: batch.calls.map(({ tool }, j) => ({ name: tool, input: { i, j } })),
    };
  }

  /** Every call has its one result behind it, in order, and those of this turn are no makeshift. */
  #checkPrompt(prompt: readonly PromptMessage[], turnFrom: number): void {
    for (const [at, { role, content }] of prompt.entries()) {
      if (role !== "assistant" || typeof content === "string") continue;
      const asked = partsOf(content, "tool-call").map(({ toolCallId }) => toolCallId);
      if (asked.length === 0) continue;
      const next = prompt[at + 1];
      const results = next?.role === "tool" ? partsOf(next.content, "tool-result") : [];
      const given = results.map(({ toolCallId }) => toolCallId);
      if (String(asked) !== String(given)) this.problem(`the model sees calls ${asked} with results ${given}`);
      for (const { output, toolCallId } of at > turnFrom ? results : []) {
        const { value } = output as { value?: unknown };
        if (String(value).startsWith("Not executed")) this.problem(`the model is told that ${toolCallId} did not run`);
      }
    }
  }

  /** The store as one life sees it (W1). */
  #storeFor(life: Life): Store {
    return new Proxy(this.store, {
      get: (target, key) => {
        const value = Reflect.get(target, key);
        if (typeof value !== "function") return value;
        if (key === "append") return (...args: Parameters<Store["append"]>) => this.#append(life, ...args);
        return (...args: unknown[]) => {
          this.activity++;
          return life.isDead
            ? never
            : Promise.resolve(value.apply(target, args)).then((got) => (life.isDead ? never : got));
        };
      },
    });
  }

  async #append(life: Life, on: BranchRef, events: readonly NewEvent[], options?: AppendOptions) {
    this.activity++;
    life.step();
    if (life.isDead) return never;
    const appended = await this.store.append(on, events, options);
    for (const [i, event] of events.entries()) this.#note(codec.decode({ ...event, seq: appended.first + i }) as Fact);
    // An answer is no part of the run, although the run may be what it is given through.
    if (options?.epoch !== undefined || options?.claim) life.lastSeq = appended.last;
    life.step();
    return life.isDead ? never : appended;
  }

  #note(fact: Fact): void {
    this.facts.push(fact);
    if (fact.type === "message.added" && typeof fact.content !== "string") {
      for (const call of partsOf(fact.content, "tool-call")) this.asked.set(String(call.toolCallId), call as never);
    }
    if (fact.type !== "tool.returned") return;
    if (this.acked.has(fact.callId)) this.problem(`call ${fact.callId} has a second result`);
    this.acked.add(fact.callId);
  }
}

function partsOf(content: unknown, type: string): { readonly [key: string]: unknown }[] {
  return (content as { type: string }[]).filter((part) => part.type === type);
}
