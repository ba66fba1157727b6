// The steps of an execution, for people: from its open turn, or from the log of the last one.

import type { FactPayload } from "../events/index.ts";
import type { Branch, EventPage, Scope, Sessions } from "../sessions/index.ts";
import type { DrawnStep } from "./graph/mermaid.ts";

/** The steps of the execution on a branch, in order, with the questions that wait for an answer. */
export async function executionSteps(
  sessions: Pick<Sessions, "loadBranch" | "events">,
  scope: Scope,
): Promise<DrawnStep[]> {
  const branch = await sessions.loadBranch(scope);
  const { uncommittedTurn: open, turns } = branch;
  const known = open ? (open.steps ?? []) : await stepsInLog(sessions, scope, turns.at(-1)?.id);
  return [...known, ...asked(branch)];
}

async function stepsInLog(
  sessions: Pick<Sessions, "events">,
  scope: Scope,
  turnId: string | undefined,
): Promise<readonly DrawnStep[]> {
  if (turnId === undefined) return [];
  const types = ["step.started", "step.returned", "step.skipped"];
  const lists = await Promise.all(types.map((type) => allEvents(sessions, scope, { turnId, type })));
  const facts = lists.flat().sort((a, b) => a.seq - b.seq);
  const steps = new Map<string, DrawnStep>();
  for (const fact of facts) {
    const { key, kind, error } = fact as unknown as FactPayload<"step.returned">;
    const ended = fact.type === "step.skipped" ? "skipped" : error ? "failed" : "returned";
    steps.set(key, { key, status: fact.type === "step.started" ? "started" : ended, ...(kind && { kind }) });
  }
  return [...steps.values()];
}

async function allEvents(sessions: Pick<Sessions, "events">, scope: Scope, query: { turnId: string; type: string }) {
  const found = [];
  for (let after: number | undefined = 0; after !== undefined; ) {
    const page: EventPage = await sessions.events(scope, { ...query, after });
    found.push(...page);
    after = page.after;
  }
  return found;
}

function asked({ interactions }: Pick<Branch, "interactions">): DrawnStep[] {
  return interactions.flatMap(({ request: { step } }) =>
    typeof step === "string" ? [{ key: step, kind: "ask", status: "started" as const }] : [],
  );
}
