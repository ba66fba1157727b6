// What facts change for those who don't read the branch: hints for lists.

import type { Fact, UnknownFact } from "../../events/index.ts";
import type { Change } from "../../wire/index.ts";

type Place = Pick<Extract<Change, { type: "branch-change" }>, "sessionId" | "branchId" | "visibility">;

/** The changes that facts of one append make, each once. */
export function changesOf(place: Place, facts: readonly (Fact | UnknownFact)[]): readonly Change[] {
  const changes = new Map<string, Change>();
  for (const fact of facts as readonly Fact[]) {
    for (const change of changesBy(fact, place)) changes.set(JSON.stringify(change), change);
  }
  return [...changes.values()];
}

const nothing: readonly Change[] = [];

function changesBy(fact: Fact, place: Place): readonly Change[] {
  const queue: Change = { type: "queue-change", ...place };
  switch (fact.type) {
    case "turn.started":
    case "turn.resumed": {
      const { runId, agentId } = fact;
      const turnId = fact.type === "turn.started" ? fact.id : fact.turnId;
      const by = { ...(runId !== undefined && { runId }), ...(agentId !== undefined && { agentId }) };
      const start: Change = { type: "run-start", ...place, turnId, ...by };
      return fact.type === "turn.started" && fact.inputs ? [queue, start] : [start];
    }
    case "turn.committed":
    case "turn.staged":
      return [{ type: "run-end", ...place, turnId: fact.turnId, status: "completed" }];
    case "turn.ended":
      return [{ type: "run-end", ...place, turnId: fact.turnId, status: fact.status }];
    case "interaction.opened":
      return [{ type: "question-open", ...place, interactionId: fact.id, kind: fact.kind }];
    case "interaction.answered":
    case "interaction.expired":
      return [{ type: "question-close", ...place, interactionId: fact.interactionId }];
    case "input.queued":
    case "input.edited":
    case "input.withdrawn":
      return [queue];
    case "message.added":
      return fact.inputId === undefined ? nothing : [queue];
    case "branch.updated":
    case "branch.reverted":
    case "turn.discarded":
    case "history.compacted":
    case "history.restored":
      return [{ type: "branch-change", ...place }];
    default:
      return nothing;
  }
}
