// One agent's life in a world: how it comes to the branch, what it is told while it runs, and how it ends.

import type { Agent } from "../../../src/agent/index.ts";
import { BoughError } from "../../../src/base/errors.ts";
import type { JsonObject } from "../../../src/base/json.ts";
import type { BoughEvent } from "../../../src/events/index.ts";
import type { Interaction } from "../../../src/projection/index.ts";
import type { Run, RunOptions, RunResult } from "../../../src/runs/index.ts";
import { deadOwner, replay } from "../../sessions/kit.ts";
import type { AnswerPlan, LifePlan } from "./story.ts";
import { resultOf } from "./tools.ts";
import { answerMs, Life, leaseMs, ref, type World } from "./world.ts";

/** What was seen of a life. */
export interface Lived {
  readonly life: Life;
  readonly plan: LifePlan;
  readonly events: readonly BoughEvent[];
  /** Absent when it died. */
  readonly result?: RunResult;
}

/** How often time moves on before a run that does nothing counts as stuck: longer than all waits of a story. */
const patience = 100;

export async function live(world: World, plan: LifePlan, number: number, isLast: boolean): Promise<Lived | undefined> {
  const signal = new AbortController();
  let run: Run | undefined;
  const ends: Record<LifePlan["end"], () => void> = {
    none: () => {},
    interrupt: () => void run?.interrupt("enough"),
    signal: () => signal.abort(),
    park: () => void run?.park(),
    crash: () => life.die(),
  };
  const life = new Life({ number, steps: plan.after, end: () => ends[plan.end](), isLast });
  const owner = plan.host === "here" ? deadOwner() : `elsewhere/${number}`;
  const agent = world.agent(life, plan.end === "crash" ? owner : `alive/${number}`);
  const questions = plan.questions === "default" ? {} : { questions: plan.questions };
  const options: RunOptions = { ...questions, ...ref, signal: signal.signal };
  run = await settled(world, life, enter(world, agent, plan, options));
  if (!run) return life.isDead ? { life, plan, events: [] } : undefined;
  const events: BoughEvent[] = [];
  const reading = plan.listens
    ? read(world, life, run, events).catch((error) => notBegun(error, signal.signal))
    : undefined;
  const ended = run.result.catch((error) => notBegun(error, signal.signal));
  const result = await settled(world, life, ended, (waited) => tend(world, life, plan, run!, waited));
  if (!result) return { life, plan, events };
  await Promise.race([reading, life.death]);
  return life.isDead ? { life, plan, events } : { life, plan, events, result };
}

/** A signal that is aborted before the branch is taken is a refusal, not an end. */
function notBegun(error: unknown, signal: AbortSignal): undefined {
  if (!signal.aborted || !BoughError.is(error, "aborted")) throw error;
}

/** Takes the branch; undefined when there is nothing left to do on it. */
async function enter(world: World, agent: Agent, plan: LifePlan, options: RunOptions): Promise<Run | undefined> {
  const view = await replay(world.store, ref);
  if (!view.open && view.turns.length > 0) {
    await refused(world, agent.run(undefined, options), "nothing_to_resume");
    return undefined;
  }
  if (!view.open) return agent.run("Begin", options);
  await waitForLease(world);
  if (plan.entry === "anew") return agent.run("Something else", options);
  if (plan.entry === "recover") {
    const [left] = await agent.recover({ run: options });
    if (left?.turnId !== view.open.id) world.problem("recover() does not find the open turn");
    if (left?.run) return left.run;
  }
  if (plan.entry === "respond") {
    for (const question of view.interactions) {
      const run = await agent.respond(ref, question.id, answerTo(world, question), options).catch(closed);
      if (run) return run;
    }
  }
  return agent.run(undefined, options);
}

/** A question may be over before somebody answers. */
function closed(error: unknown): undefined {
  if (!BoughError.is(error, "interaction_closed")) throw error;
}

/** Until nobody else holds the branch; a dead process of this host doesn't. */
async function waitForLease(world: World): Promise<void> {
  const [claim] = await world.store.listRuns();
  if (claim && claim.owner !== deadOwner()) world.clock.advance(leaseMs);
}

async function refused(world: World, run: Run, code: string): Promise<void> {
  await run.result.then(
    ({ status }) => world.problem(`expected ${code}, but the run is ${status}`),
    (error) => {
      if (!BoughError.is(error) || error.code !== code) world.problem(`expected ${code}, not ${error}`);
    },
  );
}

async function read(world: World, life: Life, run: Run, events: BoughEvent[]): Promise<void> {
  for await (const event of run) {
    world.activity++;
    if (life.isDead) return;
    if (event.seq !== undefined && world.facts[event.seq - 1]?.id !== (event as { id?: string }).id) {
      world.problem(`life ${life.number} was shown ${event.type} before it was in the log`);
    }
    events.push(event);
    life.step();
  }
}

/** What the work gives; undefined when its agent dies. `tend` is called whenever nothing happens. */
async function settled<T>(
  world: World,
  life: Life,
  work: Promise<T>,
  tend: (waited: number) => Promise<void> = async () => {},
): Promise<T | undefined> {
  let end: { value?: T; error?: unknown } | undefined;
  work.then(
    (value) => {
      end = { value };
    },
    (error) => {
      end = { error };
    },
  );
  for (let waited = 0; !end && !life.isDead; waited++) {
    await idle(world);
    if (!end && !life.isDead) await Promise.race([tend(waited), life.death]);
    if (waited > 2 * patience) throw new Error(`Life ${life.number} does not end.`);
  }
  if (life.isDead) return undefined;
  if (end && "error" in end) throw end.error;
  return end!.value;
}

/** Until nothing happens any more by itself. */
async function idle(world: World): Promise<void> {
  for (let quiet = 0; quiet < 2; ) {
    const before = world.activity;
    await new Promise((resolve) => setImmediate(resolve));
    quiet = world.activity === before ? quiet + 1 : 0;
  }
}

/** Nothing happens: somebody answers, or time passes, or a tool hangs and somebody loses patience. */
async function tend(world: World, life: Life, plan: LifePlan, run: Run, waited: number): Promise<void> {
  const { interactions } = await replay(world.store, ref);
  // What was asked with nobody waiting for it does not expire, so somebody answers in the end.
  const question = interactions.find(({ expiresAt = Number.POSITIVE_INFINITY, ...each }) => {
    return world.clock.now() < expiresAt && (planFor(world, each) !== "silence" || !Number.isFinite(expiresAt));
  });
  if (question && plan.questions !== "deny") {
    const answer = answerTo(world, question);
    // One that is about to die here has the name of a dead process already: another agent would take its branch.
    const isTaken = plan.end === "crash" && plan.host === "here";
    if (plan.answersFrom === "run" || isTaken) return run.respond(question.id, answer).catch(closed);
    const elsewhere = world.agent(new Life({ number: -1, steps: -1, end: () => {}, isLast: true }), "alive/other");
    const other = await elsewhere.respond(ref, question.id, answer).catch(closed);
    if (other) world.problem("a second run was begun on a branch that is held");
    return;
  }
  const isHanging = life.hanging.size > 0 && interactions.length === 0;
  if (waited < patience && !isHanging) return world.clock.advance(answerMs / 6);
  if (!isHanging) world.problem(`life ${life.number} is stuck`);
  await run.interrupt("stuck");
}

function planFor(world: World, { callId, request }: Pick<Interaction, "callId" | "request">): AnswerPlan {
  const plan = world.planOf(world.asked.get(callId!)!);
  return request.again === true ? plan.again : plan.answer;
}

/** What the door lets through and says little. */
function junkFor(kind: Interaction["kind"]): JsonObject {
  if (kind === "clarification") return { answer: "perhaps" };
  return kind === "client-tool" ? {} : { approved: false, reason: "perhaps" };
}

function answerTo(world: World, question: Interaction): JsonObject {
  const { callId, kind } = question;
  const plan = planFor(world, question);
  if (plan === "junk") return junkFor(kind);
  if (kind === "clarification") return { answer: `this one, for ${callId}` };
  if (kind === "client-tool") return plan === "deny" ? { error: "no" } : { output: { type: "circle", of: callId! } };
  if (plan === "settle") return { approved: false, output: resultOf(callId!) };
  return { approved: plan !== "deny", ...(plan === "always" && { choice: "always" }) };
}
