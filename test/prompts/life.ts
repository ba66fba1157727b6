// A long life of a branch, as a property: every prompt begins the next one unless something says why not, and is rebuilt byte for
// byte from the log.

import { expect } from "vitest";
import { z } from "zod";
import { type Fact, textOf } from "../../src/events/index.ts";
import { type Agent, createAgent, defineTool, keepTurns, planning, type Store, subagent } from "../../src/index.ts";
import type { ScriptedModel } from "../../src/scripted/index.ts";
import { manualClock, seededIds } from "../../src/testing/index.ts";
import { hidden } from "../children/kit.ts";
import { callOf, numberedModel, wireOf, wireOfSent } from "./kit.ts";

/** Numbers from 0 to 1 that follow from a seed. */
function chanceOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0;
    return ((state ^ (state >>> 13)) >>> 0) / 2 ** 32;
  };
}

const search = defineTool({
  description: "Finds pages.",
  input: z.object({ about: z.string() }),
  effect: "read",
  execute: ({ about }) => `${about}: ${"page ".repeat(60)}`,
});

const helperInstructions = "Help whoever asks.";

/** What the model says in a turn: nothing but text, a search or two, a question to a child, or a new plan. */
function script(chance: () => number): ScriptedModel {
  return numberedModel((prompt, index) => {
    const results = prompt
      .slice(prompt.findLastIndex(({ role }) => role === "user"))
      .filter(({ role }) => role === "tool");
    const kind = chance();
    if (textOf(prompt[0]!).includes(helperInstructions)) return `Help ${index}.`;
    if (results.length > 1 || kind < 0.5) return `Reply ${index}.`;
    if (kind < 0.53) {
      return { text: "Asking.", calls: [{ name: "help", input: { input: `About ${index}?` }, id: `h${index}` }] };
    }
    if (kind < 0.8) {
      const calls = [{ name: "search", input: { about: `topic ${index}` }, id: `c${index}` }];
      return { text: "Looking.", calls: kind < 0.7 ? calls : [...calls, { ...calls[0]!, id: `d${index}` }] };
    }
    const steps = [{ step: `Step of ${index}`, status: "pending" }];
    return { text: "Planning.", calls: [{ name: "update_plan", input: { steps }, id: `p${index}` }] };
  });
}

interface Place {
  readonly branchId: string;
  /** The reply before, and the position that it was made on. */
  last: string | undefined;
  upTo: number;
}

export interface LifeOptions {
  readonly seed: number;
  readonly turns: number;
  /** How often the rebuilt prompt of a reply is compared, 1 for always. */
  readonly checkEvery?: number;
}

/** Lives through so many turns on a store. `reopen` gives another handle on it, as another process would have. */
export async function live(store: Store, reopen: () => Promise<Store>, { seed, turns, checkEvery = 1 }: LifeOptions) {
  const chance = chanceOf(seed);
  const clock = manualClock();
  const model = script(chance);
  const create = (on: Store, name: string) => {
    const helper = createAgent({ model, instructions: helperInstructions, random: () => 0 });
    const help = subagent(helper, { description: "Helps.", permission: false });
    return createAgent({
      ...{ model, store: on, clock, ids: seededIds(name), random: () => 0, instructions: "Find pages, keep a plan." },
      tools: { search, help },
      middleware: [planning()],
      // Old outputs are cleared where that is enough, or else all but three turns left out.
      compaction: { strategy: keepTurns(3), window: 4000, at: 0.7, target: 0.6, clear: { batches: 1, gain: 200 } },
      settings: { temperature: 0.5 },
    });
  };
  const agent = create(store, "life");
  await agent.createSession("s");
  const places: Place[] = [{ branchId: "main", last: undefined, upTo: 0 }];
  const seen: Seen = { breaks: 0, prefixes: 0, compactions: 0, clearings: 0, children: 0 };
  for (let turn = 0; turn < turns; turn++) {
    const place = places[Math.floor(chance() * places.length)]!;
    await disturb(agent, place, places, chance);
    const { messages } = await agent.run(`Input ${turn}.`, { sessionId: "s", branchId: place.branchId }).result;
    for (const reply of messages.filter(({ role }) => role === "assistant")) {
      await check(agent, place, reply, { model, seen, isCompared: turn % checkEvery === 0 });
    }
  }
  const other = create(await reopen(), "other");
  for (const { branchId } of places) await checkBranch(other, branchId, model);
  const children = await hidden(other);
  seen.children = children.length;
  // The first ones have been compacted over since, the last ones were made of compacted branches.
  for (const { id } of [...children.slice(0, 3), ...children.slice(-3)]) await checkBranch(other, id, model);
  return seen;
}

type Seen = Record<"breaks" | "prefixes" | "compactions" | "clearings" | "children", number>;

/** Something happens to the branch between two turns, or nothing. */
async function disturb(agent: Agent, place: Place, places: Place[], chance: () => number): Promise<void> {
  const scope = { sessionId: "s", branchId: place.branchId };
  const kind = chance();
  const { messages } = await agent.loadBranch(scope);
  if (messages.length < 4) return;
  const any = messages[Math.floor(chance() * messages.length)]!;
  if (kind < 0.05) {
    const strategy = () => ({ replacements: [{ role: "user", content: `Summary ${any.id}.` } as const] });
    await agent.compact(scope, { strategy }).catch(ignore("nothing_to_compact"));
  } else if (kind < 0.08) {
    await agent.compact(scope, { keep: { turns: 2 }, retention: "hard" }).catch(ignore("nothing_to_compact"));
  } else if (kind < 0.15) {
    await agent.uncompact(scope).catch(ignore("compaction_not_found"));
  } else if (kind < 0.2) {
    await agent.pin(scope, any.id);
  } else if (kind < 0.24 && places.length < 4) {
    const { id } = await agent.forkBranch(scope);
    // Its first turn stays in the fork: the prompt before it is the parent's.
    places.push({ ...place, branchId: id });
  }
}

function ignore(code: string) {
  return (error: { code?: string }) => {
    if (error.code !== code) throw error;
  };
}

interface Checking {
  readonly model: ScriptedModel;
  readonly seen: Seen;
  readonly isCompared: boolean;
}

async function check(
  agent: Agent,
  place: Place,
  reply: { id: string; content: Parameters<typeof textOf>[0]["content"] },
  { model, seen, isCompared }: Checking,
): Promise<void> {
  const scope = { sessionId: "s", branchId: place.branchId };
  if (isCompared) await checkReply(agent, scope, reply, model);
  const facts = await agent.events(scope, { after: place.upTo });
  const made = facts.find(({ id }) => id === reply.id) as Fact<"message.added">;
  const changes = facts.filter(({ type, seq }) => type.startsWith("history.") && seq <= made.prompt!.upTo);
  seen.compactions += changes.filter(({ type }) => type === "history.compacted").length;
  seen.clearings += changes.filter(({ type }) => type === "history.cleared").length;
  if (place.last !== undefined && (isCompared || changes.length > 0)) {
    const diff = await agent.diffPrompts(scope, place.last, reply.id);
    expect(diff.isVerified).toBe(true);
    if (diff.isPrefix) seen.prefixes++;
    else {
      seen.breaks++;
      expect(changes.map(({ type }) => type)).not.toEqual([]);
      expect(["compaction", "clearing"]).toContain(diff.first!.change);
    }
  }
  Object.assign(place, { last: reply.id, upTo: made.prompt!.upTo });
}

async function checkReply(
  agent: Agent,
  scope: { sessionId: string; branchId: string },
  reply: { id: string; content: Parameters<typeof textOf>[0]["content"] },
  { calls }: ScriptedModel,
): Promise<void> {
  const prompt = await agent.promptOf(scope, reply.id);
  expect([prompt.isVerified, prompt.missing]).toEqual([true, []]);
  expect(JSON.stringify(wireOfSent(prompt))).toBe(JSON.stringify(wireOf(calls[callOf(reply)]!)));
}

/** Everything again, from another process: the newest replies and a few of the oldest. */
async function checkBranch(agent: Agent, branchId: string, model: ScriptedModel): Promise<void> {
  const scope = { sessionId: "s", branchId };
  const { messages } = await agent.loadBranch(scope);
  const replies = messages.filter(({ role, content }) => role === "assistant" && /^#/.test(textOf({ content })));
  for (const reply of [...replies.slice(0, 3), ...replies.slice(-5)]) await checkReply(agent, scope, reply, model);
}
