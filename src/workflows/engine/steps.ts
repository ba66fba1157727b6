// Running steps: attempts, their records, and what becomes of a step that may have run before a crash.

import { alarm } from "../../base/clock.ts";
import { BoughError } from "../../base/errors.ts";
import { failpoint } from "../../base/failpoint.ts";
import type { Json, JsonObject } from "../../base/json.ts";
import { stepReturned, stepStarted } from "../../events/drafts.ts";
import type { Fact, FactPayload } from "../../events/index.ts";
import { Parked } from "../../runs/endings.ts";
import { tellError } from "../../runs/redact-errors.ts";
import { errorOf, failureOf } from "../../runs/turn/close.ts";
import type { StepOptions, StepRetry } from "../port.ts";
import { attempt, delayAfter, isWorthRetrying } from "./attempt.ts";
import type { Execution } from "./execution.ts";
import type { FlowScope } from "./scope.ts";
import { digestOf, ownValue, readValue, storeValue } from "./values.ts";

export type StepKind = NonNullable<FactPayload<"step.returned">["kind"]>;

/** What an attempt came to: what the code gets, and what else its record says. */
export interface StepOutcome {
  readonly value: unknown;
  readonly more?: Pick<FactPayload<"step.returned">, "child" | "usage" | "signalId">;
}

/** A step, ready to be tried. */
export interface StepPlan {
  readonly execution: Execution;
  readonly key: string;
  readonly kind: StepKind;
  readonly retry: StepRetry | undefined;
  readonly timeoutMs: number | undefined;
  readonly input?: string | undefined;
  readonly isOnce?: boolean;
  /** It consists of other steps. */
  readonly isWhole?: boolean;
  /** What a step that may have run before a crash did. */
  readonly reconcile?: ((tries: number) => Promise<StepOutcome | "not-executed" | undefined>) | undefined;
  run(about: { attempt: number; signal: AbortSignal; scope: FlowScope }): Promise<StepOutcome>;
  /** What its record says in any case, also of a failure. */
  more?(): StepOutcome["more"];
}

/** The step's recorded result, or that of running it. */
export function askFor(plan: StepPlan): Promise<unknown> {
  const { execution, key, isWhole = false } = plan;
  const work = async (scope: FlowScope) => {
    const recorded = execution.records.returned(key);
    if (recorded) {
      execution.noteInput(key, recorded.input, plan.input);
      return resultOf(execution, recorded);
    }
    return resultOf(execution, await bringToEnd(plan, scope));
  };
  return execution.operate(key, work, { isWhole });
}

/** What the code gets of a record: the same whenever it asks (Execution-3). */
async function resultOf({ place }: Execution, fact: Fact<"step.returned">): Promise<unknown> {
  const { key, error } = fact;
  if (!error) return readValue(place, fact);
  const { message, code, ...data } = error as { message: string; code?: string };
  throw new BoughError((code ?? "run_failed") as "run_failed", message, { data: { ...data, step: key } });
}

async function bringToEnd(plan: StepPlan, scope: FlowScope): Promise<Fact<"step.returned">> {
  const { execution, key } = plan;
  const begun = execution.records.begun(key);
  const startedAt = execution.place.context.clock.now();
  let tries = begun?.tries ?? 0;
  // What waits for a signal has its time, but does not sleep through it.
  if (begun?.until !== undefined && plan.kind !== "wait") await rest(execution, { key, until: begun.until, scope });
  else if (begun && plan.isOnce) {
    const known = await settleUnsure(plan, tries);
    if (known) return record(plan, known, { tries: Math.max(1, tries), startedAt });
  }
  for (;;) {
    tries++;
    const tried = await tryOnce(plan, scope, tries);
    if ("value" in tried) return record(plan, tried, { tries, startedAt });
    const { retry = { attempts: 1 } } = plan;
    if (tries >= retry.attempts || !isWorthRetrying(retry, tried.error)) {
      return record(plan, { error: tried.error }, { tries, startedAt });
    }
    await waitToRetry(plan, { scope, tries, error: tried.error });
  }
}

async function tryOnce(
  plan: StepPlan,
  scope: FlowScope,
  tries: number,
): Promise<StepOutcome | { readonly error: unknown }> {
  const { execution, key, kind, isOnce, timeoutMs } = plan;
  const { turn } = execution;
  await turn.ensureHeld();
  if (isOnce) {
    await turn.write(stepStarted(turn.context, turn.turnId, { key, kind, tries: tries - 1 }));
    failpoint("run.step.started");
  }
  if (!plan.isWhole) turn.emitter.live({ type: "step-start", key, attempt: tries });
  const { signal } = scope;
  try {
    const about = { clock: turn.context.clock, signal, timeoutMs, key };
    const outcome = await attempt(about, (own) => plan.run({ attempt: tries, signal: own, scope }));
    failpoint("run.step.executed");
    return outcome;
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    if (error instanceof Parked) throw error;
    return { error };
  }
}

async function waitToRetry(
  { execution, key, kind, retry = { attempts: 1 } }: StepPlan,
  { scope, tries, error }: { scope: FlowScope; tries: number; error: unknown },
): Promise<void> {
  const { turn } = execution;
  const delayMs = delayAfter(retry, tries, turn.plan.random());
  const again = { attempt: tries, attempts: retry.attempts, delayMs };
  turn.emitter.live({ type: "step-retry", key, ...again, error: tellError(turn.plan, error) });
  const until = Math.ceil(turn.context.clock.now() + delayMs);
  if (delayMs > execution.napMs) await turn.write(stepStarted(turn.context, turn.turnId, { key, kind, until, tries }));
  await rest(execution, { key, until, scope });
}

/** One append; a result that can't be stored is recorded as the step's error, since the step has run. */
async function record(
  plan: StepPlan,
  came: StepOutcome | { readonly error: unknown },
  { tries, startedAt }: { tries: number; startedAt: number },
): Promise<Fact<"step.returned">> {
  const { execution, key, kind, input } = plan;
  const { turn } = execution;
  const { clock } = turn.context;
  const stored = "value" in came ? await store(plan, came) : { error: recordedError(execution, came.error) };
  if (turn.signal.aborted) throw turn.signal.reason;
  const ms = Math.max(0, clock.now() - startedAt);
  const known = { key, kind, ...stored, ...("error" in stored && plan.more?.()), tries, ms };
  const draft = stepReturned(turn.context, turn.turnId, { ...known, ...(input !== undefined && { input }) });
  const [fact] = await turn.write(draft);
  failpoint("run.step.written");
  return fact as Fact<"step.returned">;
}

async function store({ execution, key }: StepPlan, { value, more }: StepOutcome) {
  const label = `The output of the step "${key}"`;
  try {
    const stored = await storeValue(execution.place, ownValue(value, label), { label, name: key });
    return { ...stored, ...more };
  } catch (error) {
    return { error: recordedError(execution, error), ...more };
  }
}

function recordedError({ turn }: Execution, error: unknown) {
  return errorOf(failureOf(turn.plan, error));
}

/** Sleeps, from the first time that the step is asked for. */
export function sleepUntil(execution: Execution, key: string, time: () => number): Promise<unknown> {
  return askFor({
    execution,
    key,
    kind: "sleep",
    retry: undefined,
    timeoutMs: undefined,
    run: async ({ scope }) => {
      const { turn, records } = execution;
      const begun = records.begun(key)?.until;
      const until = begun ?? Math.ceil(time());
      if (begun === undefined && until - turn.context.clock.now() > execution.napMs) {
        await turn.write(stepStarted(turn.context, turn.turnId, { key, kind: "sleep", until }));
      }
      await rest(execution, { key, until, scope });
      return { value: undefined };
    },
  });
}

/**
 * Waits until a time. A short wait keeps the process; a long one sleeps when nothing else is under way, and then this never
 * resolves (Execution-8).
 */
async function rest(
  execution: Execution,
  { key, until, scope }: { key: string; until: number; scope: FlowScope },
): Promise<void> {
  const { turn } = execution;
  const { clock } = turn.context;
  const { signal } = scope;
  const isShort = until - clock.now() <= execution.napMs;
  if (!isShort) turn.sleepers.set(key, until);
  let stay = () => {};
  let cancel = () => {};
  await new Promise<void>((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    if (signal.aborted) reject(signal.reason);
    if (!isShort) stay = turn.parking.wait({ callId: key, kind: "sleep" }, (parked) => execution.leave(parked));
    const look = () => {
      const left = until - clock.now();
      // A timer may ring a little early, and a clock may have been set back.
      if (left <= 0) resolve();
      else cancel = alarm(clock, left, look);
    };
    look();
  }).finally(() => {
    cancel();
    // What a pass that is left waited for is what the turn sleeps for.
    if (execution.isLeft) return;
    stay();
    turn.sleepers.delete(key);
  });
}

/** A step that must not run twice and may have run: its own look decides, or a person. */
async function settleUnsure(
  plan: StepPlan,
  tries: number,
): Promise<StepOutcome | { readonly error: unknown } | undefined> {
  const { execution, key } = plan;
  const { turn } = execution;
  const found = await plan.reconcile?.(tries).catch((error) => {
    turn.emitter.live({ type: "error-report", source: "tool", error: tellError(turn.plan, error) });
    return undefined;
  });
  if (found === "not-executed") return undefined;
  if (found) return found;
  const description = "The step was cut off by a crash and may have taken effect.";
  const request: JsonObject = { toolName: key, input: null, again: true, description, step: key };
  const answer = await turn.asking.ask({ kind: "permission", key: `step:again:${key}:${tries}`, request });
  if (!answer.answered) return { error: notAnswered(key) };
  const { approved, output } = answer.answer;
  if (output !== undefined) return outputGiven(output as Json);
  if (approved === true) return undefined;
  const sentence = `The step "${key}" was cut off by a crash, and running it again was denied.`;
  return { error: new BoughError("run_failed", sentence, { data: { key } }) };
}

/** What a person says the step returned: a plain value, or a tool's output. */
function outputGiven(output: Json): StepOutcome | { readonly error: unknown } {
  const { type, value } = Object(output) as { type?: string; value?: Json };
  if (type === "error-text" || type === "error-json") {
    const words = typeof value === "string" ? value : JSON.stringify(value);
    return { error: new BoughError("run_failed", words) };
  }
  return { value: type === "text" || type === "json" ? value : output };
}

export function notAnswered(key: string): BoughError {
  return new BoughError("no_answer", `Nobody answered the question of the step "${key}" in time.`, { data: { key } });
}

/** The digest of what a step is given. */
export function inputDigest(key: string, { input }: Pick<StepOptions, "input">): string | undefined {
  return input === undefined ? undefined : digestOf(input, `The input of the step "${key}"`);
}
