// The handle of a session over HTTP.

import type { JsonObject } from "../base/json.ts";
import type { BoughEvent } from "../events/index.ts";
import type { BranchDetails, SessionHandle } from "../wire/handle.ts";
import type {
  BranchBody,
  BranchSummary,
  InteractionListBody,
  OpenInteractionBody,
  PermissionBody,
  SessionBody,
} from "../wire/types.ts";
import type { RemoteBranch } from "./branch.ts";

/** What a session's handle needs of its client. */
export interface SessionSource<Event> {
  branch(scope: { readonly sessionId: string; readonly branchId?: string }): RemoteBranch<Event>;
  getSession(sessionId: string): Promise<SessionBody>;
  updateSession(sessionId: string, patch: { readonly metadata: JsonObject }): Promise<SessionBody>;
  deleteSession(sessionId: string): Promise<void>;
  listBranches(sessionId: string): Promise<readonly BranchSummary[]>;
  createBranch(
    scope: { readonly sessionId: string; readonly branchId?: string | undefined },
    details: BranchDetails,
  ): Promise<BranchBody>;
  listInteractions(query: { sessionId: string; cursor?: string }): Promise<InteractionListBody>;
  listPermissions(sessionId: string): Promise<readonly PermissionBody[]>;
  revokePermission(sessionId: string, revoked: { agentId?: string; tool: string }): Promise<number>;
}

export class RemoteSession<Event = BoughEvent> implements SessionHandle<Event> {
  readonly id: string;
  readonly #client: SessionSource<Event>;

  /** Use `session` of a client. */
  constructor(client: SessionSource<Event>, id: string) {
    this.#client = client;
    this.id = id;
  }

  get(): Promise<SessionBody> {
    return this.#client.getSession(this.id);
  }

  update(patch: { readonly metadata: JsonObject }): Promise<SessionBody> {
    return this.#client.updateSession(this.id, patch);
  }

  delete(): Promise<void> {
    return this.#client.deleteSession(this.id);
  }

  branch(branchId = "main"): RemoteBranch<Event> {
    return this.#client.branch({ sessionId: this.id, branchId });
  }

  branches(): Promise<readonly BranchSummary[]> {
    return this.#client.listBranches(this.id);
  }

  async createBranch({
    branchId,
    ...details
  }: BranchDetails & { readonly branchId?: string } = {}): Promise<RemoteBranch<Event>> {
    const { id } = await this.#client.createBranch({ sessionId: this.id, branchId }, details);
    return this.branch(id);
  }

  async interactions(): Promise<readonly OpenInteractionBody[]> {
    const found: OpenInteractionBody[] = [];
    let cursor: string | undefined;
    do {
      const query = { sessionId: this.id, ...(cursor !== undefined && { cursor }) };
      const page: InteractionListBody = await this.#client.listInteractions(query);
      found.push(...page.interactions);
      cursor = page.cursor;
    } while (cursor !== undefined);
    return found;
  }

  permissions(): Promise<readonly PermissionBody[]> {
    return this.#client.listPermissions(this.id);
  }

  revokePermission(revoked: { readonly agentId?: string; readonly tool: string }): Promise<number> {
    return this.#client.revokePermission(this.id, revoked);
  }
}
