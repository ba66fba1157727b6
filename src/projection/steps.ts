// The steps of an open turn, and whether it sleeps.

import type { JsonObject } from "../base/json.ts";
import type { Fact, UnknownFact } from "../events/index.ts";
import type { BranchView, OpenTurn, StepRecord } from "./view.ts";

/** Only a step that began before is looked for, so that the cost of a step does not grow with those that have returned. */
export function addStep(turn: OpenTurn, step: StepRecord): OpenTurn {
  const { stepsBegun = 0 } = turn;
  const steps = (turn.steps ?? []) as StepRecord[];
  const isBegun = ({ key, status }: StepRecord) => status === "started" && key === step.key;
  const at = stepsBegun > 0 ? steps.findLastIndex(isBegun) : -1;
  if (at >= 0) steps[at] = Object.freeze(step);
  else steps.push(Object.freeze(step));
  const change = (step.status === "started" ? 1 : 0) - (at >= 0 ? 1 : 0);
  return turn.steps && change === 0 ? turn : { ...turn, steps, stepsBegun: stepsBegun + change };
}

export function stepOf(fact: Fact<"step.started" | "step.returned" | "step.skipped">): StepRecord {
  const { key, seq, at } = fact;
  const { kind = "step" } = fact as { kind?: StepRecord["kind"] };
  if (fact.type === "step.skipped") return { key, kind, status: "skipped", seq, at, why: fact.why };
  const { tries } = fact;
  const known = { key, kind, seq, at, ...(tries !== undefined && { tries }) };
  if (fact.type === "step.started") {
    return { ...known, status: "started", ...(fact.until !== undefined && { until: fact.until }) };
  }
  const { error, ms, child, usage } = fact;
  return {
    ...known,
    status: error ? "failed" : "returned",
    ...(ms !== undefined && { ms }),
    ...(error && { error: error as JsonObject }),
    ...(child && { child: child as JsonObject }),
    ...(usage && { usage: usage as JsonObject }),
  };
}

export function foldParked(view: BranchView, { asleep, until }: Fact<"turn.parked">): void {
  if (asleep && view.open) view.open = { ...view.open, asleep: until === undefined ? {} : { until } };
}

/** Whatever is written on its branch wakes a turn that sleeps. */
export function wake(view: BranchView, { type }: Fact | UnknownFact): void {
  if (view.open?.asleep === undefined || type === "turn.parked") return;
  const { asleep: _asleep, ...open } = view.open;
  view.open = open;
}
