// The steps of an execution, for people: from its open turn, or from the log of the last one.

import type { Fact, Interaction } from "../events/index.ts";
import { stepOf } from "../projection/steps.ts";
import type { StepRecord } from "../projection/view.ts";
import type { Scope, Sessions } from "../sessions/index.ts";
import type { DrawnStep } from "./graph/mermaid.ts";

/** A step of an execution, without its output. */
export interface ExecutionStep
  extends DrawnStep,
    Partial<Pick<StepRecord, "at" | "until" | "tries" | "ms" | "error" | "why" | "child" | "usage">> {
  /** The question that it asks. */
  readonly interactionId?: string;
}

/** What is known of an execution: its open turn, and the questions on its branch. */
export interface ExecutionState {
  readonly openTurn?: { readonly steps?: readonly ExecutionStep[] | undefined } | undefined;
  readonly interactions: readonly Pick<Interaction, "id" | "request" | "openedAt" | "expiresAt">[];
}

interface Page extends ReadonlyArray<{ readonly seq: number; readonly type: string }> {
  readonly after?: number;
}

/** Reads a page of a branch's events. */
export type ReadEvents = (query: { turnId: string; type: string; after: number }) => Promise<Page>;

/** The steps of the execution on a branch, in order, with the questions that wait for an answer. */
export async function executionSteps(
  sessions: Pick<Sessions, "loadBranch" | "events">,
  scope: Scope,
): Promise<ExecutionStep[]> {
  const { uncommittedTurn: openTurn, interactions, turns } = await sessions.loadBranch(scope);
  const lastTurn = async () => turns.at(-1)?.id;
  return stepsOf({ ...(openTurn && { openTurn }), interactions }, lastTurn, (query) => sessions.events(scope, query));
}

/** The same from the state of a branch; the log of its last turn is read when none is open. */
export async function stepsOf(
  { openTurn, interactions }: ExecutionState,
  lastTurn: () => Promise<string | undefined>,
  read: ReadEvents,
): Promise<ExecutionStep[]> {
  const known = openTurn ? (openTurn.steps ?? []) : await stepsInLog(await lastTurn(), read);
  return [...known, ...asked(interactions)];
}

async function stepsInLog(turnId: string | undefined, read: ReadEvents): Promise<readonly ExecutionStep[]> {
  if (turnId === undefined) return [];
  const types = ["step.started", "step.returned", "step.skipped"];
  const lists = await Promise.all(types.map((type) => allEvents(read, { turnId, type })));
  const facts = lists.flat().sort((a, b) => a.seq - b.seq);
  const steps = new Map<string, ExecutionStep>();
  for (const fact of facts) {
    const step = stepOf(fact as Fact<"step.started" | "step.returned" | "step.skipped">);
    steps.set(step.key, step);
  }
  return [...steps.values()];
}

async function allEvents(read: ReadEvents, query: { turnId: string; type: string }) {
  const found = [];
  for (let after: number | undefined = 0; after !== undefined; ) {
    const page: Page = await read({ ...query, after });
    found.push(...page);
    after = page.after;
  }
  return found;
}

function asked(interactions: ExecutionState["interactions"]): ExecutionStep[] {
  return interactions.flatMap(({ id, openedAt, expiresAt, request: { step } }) =>
    typeof step !== "string"
      ? []
      : [
          {
            ...{ key: step, kind: "ask", status: "started" as const, at: openedAt, interactionId: id },
            ...(expiresAt !== undefined && { until: expiresAt }),
          },
        ],
  );
}
