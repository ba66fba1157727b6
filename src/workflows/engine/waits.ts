// What an execution waits for that comes from outside: answers and signals.

import { alarm } from "../../base/clock.ts";
import { BoughError } from "../../base/errors.ts";
import type { JsonObject } from "../../base/json.ts";
import { stepStarted } from "../../events/drafts.ts";
import type { Question } from "../../middleware/index.ts";
import type { AskOptions, WaitOptions } from "../port.ts";
import type { Execution } from "./execution.ts";
import type { Signal } from "./records.ts";
import type { FlowScope } from "./scope.ts";
import { askFor, notAnswered, type StepOutcome } from "./steps.ts";
import { checkValue, ownValue } from "./values.ts";

/** The question and its answer are the step's record: the same question gets the same answer (Execution-4). */
export function ask(execution: Execution, key: string, name: string, options: AskOptions): Promise<JsonObject> {
  const { kind = "permission", timeoutMs } = options;
  const request = requestOf(kind, name, key, options.request);
  checkTime(timeoutMs, "timeoutMs");
  const expiresInMs = timeoutMs !== undefined && { expiresInMs: timeoutMs };
  const question: Question = { kind, key: `step:${key}`, request, ...expiresInMs };
  return execution.operate(key, async (scope) => {
    const { turn } = execution;
    // A branch of `race` that lost needs no answer any more.
    const withdraw = () => {
      if (!execution.isLeft && !turn.signal.aborted) void turn.asking.withdraw(question).catch(() => {});
    };
    scope.signal.addEventListener("abort", withdraw, { once: true });
    const answer = await turn.asking.ask(question).finally(() => scope.signal.removeEventListener("abort", withdraw));
    if (answer.answered) return structuredClone(answer.answer);
    throw notAnswered(key);
  });
}

/** What people are shown: what a question of its kind has to have, with what the workflow says. */
function requestOf(kind: AskOptions["kind"], name: string, key: string, given: JsonObject = {}): JsonObject {
  const request = ownValue(given, `The request of the question "${key}"`) as JsonObject;
  if (kind === "clarification") return { question: name, ...request, step: key };
  return { toolName: name, input: request, ...request, step: key };
}

/** The oldest signal of its name that no step has taken and that fits. It may have come before. */
export function waitForSignal(
  execution: Execution,
  key: string,
  { schema, timeoutMs, signal: name }: WaitOptions & { readonly signal: string },
): Promise<unknown> {
  checkTime(timeoutMs, "timeoutMs");
  const refused = new Set<string>();
  const fits = async (signal: Signal): Promise<StepOutcome | undefined> => {
    if (refused.has(signal.id)) return undefined;
    const checked = await checkValue(schema, structuredClone(signal.payload));
    if ("value" in checked) {
      const isOurs = execution.records.reserve(signal.id);
      return isOurs ? { value: checked.value, more: { signalId: signal.id } } : undefined;
    }
    refused.add(signal.id);
    const message = `The signal "${name}" does not fit what the step "${key}" waits for: ${checked.problem}.`;
    execution.turn.emitter.live({ type: "error-report", source: "run", error: { message, code: "invalid_argument" } });
    return undefined;
  };
  return askFor({
    execution,
    key,
    kind: "wait",
    retry: undefined,
    timeoutMs: undefined,
    run: async ({ scope }) => {
      const { turn, records } = execution;
      const { clock } = turn.context;
      let until = records.begun(key)?.until;
      if (timeoutMs !== undefined && until === undefined) {
        until = Math.ceil(clock.now() + timeoutMs);
        const found = await firstThat(records.signals(name), fits);
        if (found) return found;
        await turn.write(stepStarted(turn.context, turn.turnId, { key, kind: "wait", until }));
      }
      for (;;) {
        const found = await firstThat(records.signals(name), fits);
        if (found) return found;
        if (until !== undefined && clock.now() >= until) throw noSignal(name, key);
        await nextFact(execution, { key, until, scope });
      }
    },
  });
}

async function firstThat<T, R>(items: readonly T[], find: (item: T) => Promise<R | undefined>): Promise<R | undefined> {
  for (const item of items) {
    const found = await find(item);
    if (found) return found;
  }
  return undefined;
}

/** Resolves when something was written on the branch, or at a time; a pass with nothing else to do is left. */
async function nextFact(
  execution: Execution,
  { key, until, scope }: { key: string; until: number | undefined; scope: FlowScope },
): Promise<void> {
  const { turn } = execution;
  const { clock } = turn.context;
  const isPatient = turn.questionPolicy() === "wait";
  if (!isPatient) turn.sleepers.set(key, until);
  const ends: (() => void)[] = [];
  await new Promise<void>((resolve, reject) => {
    scope.signal.addEventListener("abort", () => reject(scope.signal.reason), { once: true });
    if (scope.signal.aborted) reject(scope.signal.reason);
    ends.push(execution.watch(resolve));
    if (until !== undefined) ends.push(alarm(clock, Math.max(0, until - clock.now()), resolve));
    turn.listen();
    if (!isPatient) ends.push(turn.parking.wait({ callId: key, kind: "signal" }, (parked) => execution.leave(parked)));
  }).finally(() => {
    if (execution.isLeft) return;
    for (const end of ends) end();
    turn.sleepers.delete(key);
  });
}

function noSignal(name: string, key: string): BoughError {
  const sentence = `The signal "${name}" did not come in time for the step "${key}".`;
  return new BoughError("no_answer", sentence, { data: { key, signal: name } });
}

export function checkTime(ms: unknown, what: string): void {
  if (ms === undefined || (typeof ms === "number" && Number.isFinite(ms) && ms >= 0)) return;
  throw new BoughError("invalid_argument", `${what} must be a number of milliseconds ≥ 0.`, { data: { option: what } });
}
