// What the tests of questions share: tools that need an answer, agents on one store, and a look at the log.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { z } from "zod";
import type { Agent } from "../../src/agent/index.ts";
import { type AgentOptions, type BoughEvent, createAgent, defineTool, type Run } from "../../src/index.ts";
import type { Store } from "../../src/log/index.ts";
import { sqliteStore } from "../../src/stores/sqlite/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";

export const s = { sessionId: "s" };

/** A tool that needs permission; what it ran with is in `ran`. */
export function removing() {
  const ran: string[] = [];
  const remove = defineTool({
    description: "Removes a file.",
    input: z.object({ path: z.string() }),
    permission: true,
    execute: ({ path }) => {
      ran.push(path);
      return `removed ${path}`;
    },
  });
  return { ran, tools: { remove } };
}

/** A model that asks to remove these in one batch, and then says what it got. */
export function removesThenTells(...paths: string[]) {
  return scriptedModel((prompt) => {
    const last = prompt.at(-1)!;
    if (last.role !== "tool") return { calls: paths.map((path) => ({ name: "remove", input: { path } })) };
    return JSON.stringify((last.content as readonly { output: object }[]).map(({ output }) => output));
  });
}

/** An agent with a session "s". */
export async function anAgent(options: AgentOptions): Promise<Agent> {
  const agent = createAgent(options);
  await agent.createSession("s");
  return agent;
}

/** Handles on one SQLite file, as other processes would have them. */
export async function sharedFile(): Promise<() => Promise<Store>> {
  const directory = await mkdtemp(join(tmpdir(), "bough-asking-"));
  const open: Store[] = [];
  onTestFinished(async () => {
    for (const store of open) await store.close();
    await rm(directory, { recursive: true });
  });
  return async () => {
    const store = await sqliteStore(join(directory, "bough.db"));
    open.push(store);
    return store;
  };
}

/** The questions that are open on a branch of session "s". */
export async function openQuestions(agent: Agent, branchId = "main") {
  return (await agent.loadBranch({ sessionId: "s", branchId })).interactions;
}

/** Waits until so many questions are open. */
export async function questions(agent: Agent, count = 1, branchId = "main") {
  for (;;) {
    const open = await openQuestions(agent, branchId);
    if (open.length >= count) return open;
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** Reads a run to its end, answering every question. */
export async function answering(
  run: Run,
  answer: (event: BoughEvent & { type: "interaction.opened" }) => object | undefined,
) {
  const seen: BoughEvent[] = [];
  for await (const event of run) {
    seen.push(event);
    if (event.type !== "interaction.opened") continue;
    const given = answer(event);
    if (given) await run.respond(event.id, given as never);
  }
  return seen;
}

/** The facts of a branch of session "s", of one type or all. */
export async function factsOf(agent: Agent, type?: string, branchId = "main") {
  const events = await agent.events({ ...s, branchId }, { limit: 10_000 });
  return type === undefined ? events : events.filter((event) => event.type === type);
}

/** What the model was told of the calls, by call id. */
export function outputsIn(text: string): unknown {
  return JSON.parse(text);
}
