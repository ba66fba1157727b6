import type { Client } from "./bough.ts";

export type BranchRow = Awaited<ReturnType<ReturnType<Client["branch"]>["get"]>>;

/** What is known of a branch without opening it. No agent has a part in this, though handles have to name one. */
export function readBranchRow(client: Client, sessionId: string, branchId: string): Promise<BranchRow> {
  return client.branch({ agentId: "-", sessionId, branchId }).get();
}
