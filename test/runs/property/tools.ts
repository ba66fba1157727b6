// The tools of a story. A body notes that it began and that it had its effect, and complains when it must not have.

import { defineTool, type ToolContext, type ToolSet } from "../../../src/tools/index.ts";
import type { Life, World } from "./world.ts";

const input = { type: "object" } as const;

/** What a call gives back when it goes well. */
export function resultOf(callId: string): string {
  return `done ${callId}`;
}

export function toolsOf(world: World, life: Life): ToolSet {
  const body = (check: (callId: string, toolName: string) => string | undefined) => {
    return async (given: unknown, { callId, toolName, signal }: ToolContext) => {
      begin(world, life, { callId, given });
      const problem = check(callId, toolName);
      if (problem) world.problem(`${toolName} ${callId} ${problem}`);
      world.begins.set(callId, (world.begins.get(callId) ?? 0) + 1);
      return work(world, life, { callId, signal, given });
    };
  };
  const free = body(() => undefined);
  const asking = async (given: unknown, context: ToolContext) => {
    begin(world, life, { callId: context.callId, given });
    world.begins.set(context.callId, (world.begins.get(context.callId) ?? 0) + 1);
    const answer = await context.ask("Which one?");
    await alive(life);
    const told = world.facts.some(
      (fact) =>
        fact.type === "interaction.answered" && [fact.answer.answer, JSON.stringify(fact.answer)].includes(answer),
    );
    if (!told) world.problem(`${context.callId} got an answer that is in no log: ${answer}`);
    return work(world, life, { callId: context.callId, signal: context.signal, given });
  };
  /** Returns at once; what it began goes on, perhaps until after the turn. */
  const background = async (given: unknown, context: ToolContext) => {
    const { ticks } = world.planOf({ input: given });
    await context.background("later", async () => {
      for (let i = 0; i < 4 * ticks; i++) await Promise.resolve();
      await alive(life);
      world.activity++;
      return "later";
    });
    return free(given, context);
  };
  return {
    plain: defineTool({ input, execute: free }),
    look: defineTool({ input, execute: free, effect: "read" }),
    once: defineTool({ input, execute: body((id) => repeated(world, id)), effect: "once" }),
    known: defineTool({
      input,
      execute: free,
      effect: "once",
      reconcile: async (_, { callId }) => known(world, life, callId),
    }),
    guarded: defineTool({ input, execute: body((id, name) => forbidden(world, id, name)), permission: true }),
    guardedOnce: defineTool({
      input,
      execute: body((id, name) => repeated(world, id) ?? forbidden(world, id, name)),
      permission: true,
      effect: "once",
    }),
    asking: defineTool({ input, execute: asking }),
    client: defineTool({ input }),
    background: defineTool({ input, execute: background }),
  };
}

function begin(world: World, life: Life, { callId, given }: { callId: string; given: unknown }): void {
  world.activity++;
  life.step();
  if (life.isDead) return;
  const isRecorded = world.asked.has(callId) || world.isOnlyRead({ input: given });
  if (!isRecorded) world.problem(`${callId} runs before the log says that it was asked for`);
  if (world.acked.has(callId)) world.problem(`${callId} runs although it has its result`);
  if (life.begun.has(callId)) world.problem(`${callId} runs twice in one life`);
  life.begun.add(callId);
}

/** A call that began before, runs again only if somebody said so since. */
function repeated(world: World, callId: string): string | undefined {
  const begins = world.begins.get(callId) ?? 0;
  return world.approvals(callId, "again").length < begins
    ? `runs for the ${begins + 1}. time, and nobody said so`
    : undefined;
}

function forbidden(world: World, callId: string, toolName: string): string | undefined {
  const isAllowed = world.approvals(callId, "first").length > 0 || world.isAllowedForGood(toolName);
  return isAllowed || world.approvals(callId, "again").length > 0 ? undefined : "runs without permission";
}

/** Knows what it did. */
async function known(world: World, life: Life, callId: string) {
  await alive(life);
  return world.effects.has(callId) ? ({ type: "text", value: resultOf(callId) } as const) : ("not-executed" as const);
}

async function work(
  world: World,
  life: Life,
  { callId, signal, given }: { callId: string; signal: AbortSignal; given: unknown },
): Promise<unknown> {
  const { tool, outcome, ticks } = world.planOf({ input: given });
  await alive(life);
  for (let i = 0; i < ticks; i++) await Promise.resolve();
  if (tool === "look") await seeing(world, ticks);
  await alive(life);
  if (outcome === "hangs" && !life.isLast && world.begins.get(callId) === 1) return hang(life, callId, signal);
  const times = (world.effects.get(callId) ?? 0) + 1;
  world.effects.set(callId, times);
  if (tool === "known" && times > 1) world.problem(`${callId} had its effect twice`);
  world.activity++;
  life.step();
  await alive(life);
  if (outcome === "throws") throw new Error(`no ${callId}`);
  return outcome === "junk" ? junk(callId) : resultOf(callId);
}

/** At once, or after turns of the event loop, so that it is done before, while and after its call is written. */
async function seeing(world: World, ticks: number): Promise<void> {
  for (let i = 2; i < ticks; i++) {
    await new Promise((resolve) => setImmediate(resolve));
    world.activity++;
  }
}

/** What no log can keep as it is. */
function junk(callId: string): unknown {
  const circle: Record<string, unknown> = { big: 10n, fn: () => callId, nan: Number.NaN, type: "text" };
  circle.self = circle;
  return circle;
}

function hang(life: Life, callId: string, signal: AbortSignal): Promise<never> {
  life.hanging.add(callId);
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => {
      life.hanging.delete(callId);
      reject(signal.reason);
    });
  });
}

/** Never resolves for the dead. */
function alive(life: Life): Promise<void> {
  return life.isDead ? new Promise(() => {}) : Promise.resolve();
}
