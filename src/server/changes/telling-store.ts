// The store of a tenant, which tells what becomes of sessions and branches: those are no facts that are appended to a branch.

import type { JsonObject } from "../../base/json.ts";
import type { BranchRef, DeleteOptions, NewBranch, Store } from "../../log/store.ts";
import type { RowHeader } from "../../projection/header.ts";
import { NamespacedStore } from "../../stores/namespaced/index.ts";
import type { Change } from "../../wire/index.ts";

export class TellingStore extends NamespacedStore {
  readonly #tell: (change: Change) => void;

  constructor(store: Store, namespace: string, tell: (change: Change) => void) {
    super(store, namespace);
    this.#tell = tell;
  }

  override async createSession(session: { id: string; metadata: JsonObject; state: JsonObject; branch: NewBranch }) {
    const record = await super.createSession(session);
    this.#tell({ type: "session-create", sessionId: session.id });
    return record;
  }

  override async updateSession(
    sessionId: string,
    patch: { metadata?: JsonObject; state?: JsonObject },
    options?: { expectedVersion?: number },
  ) {
    const record = await super.updateSession(sessionId, patch, options);
    this.#tell({ type: "session-change", sessionId });
    return record;
  }

  override async deleteSession(sessionId: string) {
    await super.deleteSession(sessionId);
    this.#tell({ type: "session-delete", sessionId });
  }

  override async createBranch(sessionId: string, branch: NewBranch & { parent?: { branchId: string; seq: number } }) {
    const record = await super.createBranch(sessionId, branch);
    const { visibility } = branch.header as RowHeader;
    const place = { sessionId, branchId: branch.id, ...(visibility && { visibility }) };
    const { parent } = branch;
    this.#tell(
      parent ? { type: "branch-fork", ...place, forkedFrom: parent.branchId } : { type: "branch-create", ...place },
    );
    return record;
  }

  override async deleteBranch(ref: BranchRef, options?: DeleteOptions) {
    const removed = await super.deleteBranch(ref, options);
    for (const branchId of removed) this.#tell({ type: "branch-delete", sessionId: ref.sessionId, branchId });
    return removed;
  }
}
