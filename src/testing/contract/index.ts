import { describe } from "vitest";
import { appendCases } from "./append.ts";
import { appendClaimCases } from "./append-claim.ts";
import { checkpointCases } from "./checkpoints.ts";
import { closeCases } from "./close.ts";
import { concurrencyCases } from "./concurrency.ts";
import { contentCases } from "./content.ts";
import { createBranchCases } from "./create-branch.ts";
import { createSessionCases } from "./create-session.ts";
import { deleteBranchCases } from "./delete-branch.ts";
import { deleteSessionCases } from "./delete-session.ts";
import { Contract, type ContractSizes, type StoreHarness } from "./kit.ts";
import { listBranchesCases } from "./list-branches.ts";
import { listOpenCases } from "./list-open.ts";
import { listSessionsCases } from "./list-sessions.ts";
import { liveCases } from "./live.ts";
import { maintainCases } from "./maintain.ts";
import { namesCases } from "./names.ts";
import { partsCases } from "./parts.ts";
import { readCases } from "./read.ts";
import { reopenCases } from "./reopen.ts";
import { runSlotCases } from "./run-slot.ts";
import { secondHandleCases } from "./second-handle.ts";
import { segmentCases } from "./segments.ts";
import { updateSessionCases } from "./update-session.ts";
import { watchCases } from "./watch.ts";

/**
 * Registers the contract suite of the store port: what every store must do, including errors. Call it from a test file of
 * the store; list what the store can't do in `harness.lacks`.
 */
export function describeStore(name: string, harness: StoreHarness, sizes: Partial<ContractSizes> = {}): void {
  const contract = new Contract(harness, { chain: 300, writers: 20, ...sizes });
  describe(`the ${name} store`, () => {
    partsCases(contract);
    createSessionCases(contract);
    updateSessionCases(contract);
    listSessionsCases(contract);
    deleteSessionCases(contract);
    createBranchCases(contract);
    listBranchesCases(contract);
    deleteBranchCases(contract);
    appendCases(contract);
    appendClaimCases(contract);
    readCases(contract);
    runSlotCases(contract);
    listOpenCases(contract);
    checkpointCases(contract);
    segmentCases(contract);
    contentCases(contract);
    watchCases(contract);
    liveCases(contract);
    maintainCases(contract);
    closeCases(contract);
    concurrencyCases(contract);
    namesCases(contract);
    reopenCases(contract);
    secondHandleCases(contract);
  });
}
