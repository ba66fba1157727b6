import { BoughError } from "../../base/errors.ts";
import type { BranchRef } from "../../log/store.ts";
import type { Context } from "../../sessions/context.ts";
import { type EventQuery, isSelective, readSelected } from "../../sessions/flow.ts";
import type { BranchDetails, BranchPatch, ForkRequest, RevertRequest } from "../../sessions/index.ts";
import type { Exchange } from "../exchange.ts";
import { branchBody, branchInfoBody } from "../pictures.ts";
import { Refusal } from "../refusal.ts";

export const branchHandlers = {
  async listBranches({ tenant, sessionId }: Exchange) {
    return { branches: (await tenant.sessions.listBranches(sessionId)).map(branchBody) };
  },
  async getBranch({ tenant, ref }: Exchange) {
    return branchBody(await tenant.sessions.getBranch(ref.sessionId, ref.branchId));
  },
  async createBranch(exchange: Exchange) {
    await exchange.agent();
    const { tenant, sessionId, body } = exchange;
    const { id } = await tenant.sessions.createBranch(sessionId, body as BranchDetails & { branchId?: string });
    return branchBody(await tenant.sessions.getBranch(sessionId, id));
  },
  async forkBranch(exchange: Exchange) {
    const { tenant, ref, body } = exchange;
    const { fromMessageId, ...rest } = body as Omit<ForkRequest, "from"> & { fromMessageId?: string };
    onePoint([fromMessageId, rest.fromMessageIndex, rest.fromSeq]);
    const agent = await exchange.agent();
    const from = fromMessageId === undefined ? {} : { from: fromMessageId };
    const { id } = await agent.forkBranch({ ...rest, ...from, ...ref });
    return branchBody(await tenant.sessions.getBranch(ref.sessionId, id));
  },
  async updateBranch({ tenant, ref, body }: Exchange) {
    await tenant.sessions.updateBranch(ref.sessionId, ref.branchId, body as BranchPatch);
    return branchBody(await tenant.sessions.getBranch(ref.sessionId, ref.branchId));
  },
  async deleteBranch({ tenant, ref, query, allowRecursiveDelete }: Exchange) {
    const { recursive = false } = query as { recursive?: boolean };
    if (recursive && !allowRecursiveDelete) {
      throw new Refusal("forbidden", "This server does not let clients delete a branch together with its forks.");
    }
    await tenant.sessions.deleteBranch(ref.sessionId, ref.branchId, { recursive });
    await tenant.feeds.deleted(ref.sessionId);
  },
  async revertBranch({ tenant, ref, body }: Exchange) {
    const { toMessageId, ...rest } = body as Omit<RevertRequest, "to"> & { toMessageId?: string };
    const isSaid = onePoint([toMessageId, rest.toMessageIndex, rest.toSeq]);
    if (!isSaid) throw new BoughError("invalid_argument", "Say where to go back to.");
    const to = toMessageId === undefined ? {} : { to: toMessageId };
    return branchInfoBody(await tenant.sessions.revertBranch({ ...rest, ...to, ...ref }));
  },
  async events({ tenant, ref, query }: Exchange) {
    const selected = query as EventQuery;
    if (isSelective(selected)) return selectedEvents(tenant.context, ref, selected);
    const events = await tenant.sessions.events(ref, query as { after?: number; limit?: number });
    return { events };
  },
  async siblings({ tenant, ref }: Exchange) {
    return { branches: (await tenant.sessions.siblings(ref.sessionId, ref.branchId)).map(branchBody) };
  },
};

async function selectedEvents(context: Context, ref: BranchRef, query: EventQuery) {
  const events = await readSelected(context, ref, query);
  return { events, ...(events.after !== undefined && { after: events.after }) };
}

/** A point is named in one way; whether it is named at all. */
function onePoint(ways: readonly unknown[]): boolean {
  const said = ways.filter((way) => way !== undefined).length;
  if (said > 1) throw new BoughError("invalid_argument", "Name the point in one way only.");
  return said === 1;
}
