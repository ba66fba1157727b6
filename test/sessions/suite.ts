// The behaviour of sessions, branches, turns, checkpoints and content, the same on every store.

import { describe } from "vitest";
import { branchCases } from "./branches.cases.ts";
import { checkpointCases } from "./checkpoints.cases.ts";
import { compactedCases } from "./compacted.cases.ts";
import { compactingCases } from "./compacting.cases.ts";
import { compactionCases } from "./compaction.cases.ts";
import { contentCases } from "./content.cases.ts";
import { forkCases } from "./forks.cases.ts";
import { interactionCases } from "./interactions.cases.ts";
import { casesOn, type Place } from "./kit.ts";
import { logCases } from "./log.cases.ts";
import { longCases } from "./long.cases.ts";
import { objectCases } from "./objects.cases.ts";
import { overlayCases } from "./overlays.cases.ts";
import { ownershipCases } from "./ownership.cases.ts";
import { partialCases } from "./partial.cases.ts";
import { partialProperties } from "./partial-properties.cases.ts";
import { positionCases } from "./positions.cases.ts";
import { propertyCases } from "./property.cases.ts";
import { queueCases } from "./queue.cases.ts";
import { queueProperties } from "./queue-property.cases.ts";
import { restoreCases } from "./restoring.cases.ts";
import { revertCases } from "./reverts.cases.ts";
import { sessionCases } from "./sessions.cases.ts";
import { stagedCases } from "./staged.cases.ts";
import { treeCases } from "./tree.cases.ts";
import { turnCases } from "./turns.cases.ts";
import { viewCases } from "./views.cases.ts";

export function describeSessions(place: Place): void {
  describe(`sessions on ${place.kind}`, () => {
    const test = casesOn(place);
    sessionCases(test);
    branchCases(test);
    treeCases(test);
    ownershipCases(test);
    forkCases(test);
    revertCases(test);
    turnCases(test);
    stagedCases(test);
    interactionCases(test);
    queueCases(test);
    objectCases(test);
    checkpointCases(test);
    contentCases(test);
    compactionCases(test);
    compactingCases(test);
    compactedCases(test);
    overlayCases(test);
    logCases(test);
    viewCases(test);
    longCases(test);
    partialCases(test);
    propertyCases(place);
    restoreCases(place);
    positionCases(place);
    queueProperties(place, place.kind === "memory" ? 150 : 15);
    partialProperties(place, place.kind === "memory" ? 60 : 5);
  });
}
