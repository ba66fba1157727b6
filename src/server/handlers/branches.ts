import { BoughError } from "../../base/errors.ts";
import type { BranchRef } from "../../log/store.ts";
import { branchBody, branchInfoBody, messagesBefore } from "../../sessions/bodies.ts";
import type { Visibility } from "../../sessions/branch.ts";
import { findBranches, findSiblings, readBranch } from "../../sessions/branches.ts";
import type { Context } from "../../sessions/context.ts";
import { type EventQuery, isSelective, readSelected } from "../../sessions/flow.ts";
import { readEventPage } from "../../sessions/history.ts";
import type { BranchDetails, BranchPatch, ForkRequest, RevertRequest } from "../../sessions/index.ts";
import { branchPage } from "../branch-pages.ts";
import type { Exchange } from "../exchange.ts";
import { AnswerRoom, jsonAnswer, messagesAnswer, type PageQuery } from "../pages.ts";
import { needScope } from "../policy.ts";
import { Refusal } from "../refusal.ts";

interface ListQuery {
  readonly visibility?: Visibility;
  readonly changedSince?: number;
}

export const branchHandlers = {
  async listBranches({ tenant, sessionId, query }: Exchange) {
    const { visibility, changedSince = 0, ...page } = query as PageQuery & ListQuery;
    const { records, tree } = await findBranches(tenant.context, sessionId, visibility);
    return branchPage({ records: records.filter(({ activeAt }) => activeAt >= changedSince), tree }, page);
  },
  async getBranch({ tenant, ref }: Exchange) {
    return branchBody(await tenant.sessions.getBranch(ref));
  },
  async createBranch(exchange: Exchange) {
    await exchange.agent();
    const { tenant, sessionId, body } = exchange;
    const { id } = await tenant.sessions.createBranch(sessionId, body as BranchDetails & { branchId?: string });
    return branchBody(await tenant.sessions.getBranch({ sessionId, branchId: id }));
  },
  async forkBranch(exchange: Exchange) {
    const { tenant, ref, body } = exchange;
    const { fromMessageId, ...rest } = body as Omit<ForkRequest, "from"> & { fromMessageId?: string };
    onePoint([fromMessageId, rest.fromMessageIndex, rest.fromSeq]);
    // A strategy may ask a model, which is what running is about.
    if (typeof rest.compaction === "object") needScope(exchange.identity, "run");
    const agent = await exchange.agent();
    const from = fromMessageId === undefined ? {} : { from: fromMessageId };
    const { id } = await agent.forkBranch(ref, { ...rest, ...from });
    return branchBody(await tenant.sessions.getBranch({ sessionId: ref.sessionId, branchId: id }));
  },
  async updateBranch({ tenant, ref, body }: Exchange) {
    await tenant.sessions.updateBranch(ref, body as BranchPatch);
    return branchBody(await tenant.sessions.getBranch(ref));
  },
  async deleteBranch({ tenant, ref, query, allowRecursiveDelete }: Exchange) {
    const { recursive = false } = query as { recursive?: boolean };
    if (recursive && !allowRecursiveDelete) {
      throw new Refusal("forbidden", "This server does not let clients delete a branch together with its forks.");
    }
    await tenant.sessions.deleteBranch(ref, { recursive });
    await tenant.feeds.deleted(ref.sessionId);
  },
  async revertBranch({ tenant, ref, body }: Exchange) {
    const { toMessageId, ...rest } = body as Omit<RevertRequest, "to"> & { toMessageId?: string };
    const isSaid = onePoint([toMessageId, rest.toMessageIndex, rest.toSeq]);
    if (!isSaid)
      throw new BoughError("invalid_argument", "Give the point to revert to: toMessageId, toMessageIndex or toSeq.");
    const to = toMessageId === undefined ? {} : { to: toMessageId };
    return branchInfoBody(await tenant.sessions.revertBranch(ref, { ...rest, ...to }));
  },
  async events({ tenant, ref, query, limits }: Exchange) {
    const { order, ...range } = query as EventQuery & { order?: "oldest" | "newest" };
    const isNewest = order === "newest";
    const page = await readPage(
      tenant.context,
      ref,
      { ...range, ...(isNewest && { reverse: true }) },
      limits.answerBytes,
    );
    const events = await new AnswerRoom(limits.answerBytes).first(page);
    const further = isNewest ? page.before : page.after;
    const next = events.length < page.length ? page[events.length - 1]?.seq : further;
    return jsonAnswer({ events }, { [isNewest ? "before" : "after"]: next });
  },
  async messages({ tenant, ref, query, limits }: Exchange) {
    const { last = 200, before } = query as { last?: number; before?: string };
    const branch = await readBranch(tenant.context, ref);
    return messagesAnswer(messagesBefore(ref, branch, before), last, limits);
  },
  async siblings({ tenant, ref, query }: Exchange) {
    return branchPage(await findSiblings(tenant.context, ref), query as PageQuery);
  },
};

function readPage(context: Context, ref: BranchRef, query: EventQuery, bytes: number) {
  const bounded = { ...query, bytes };
  return isSelective(query) ? readSelected(context, ref, bounded) : readEventPage(context, ref, bounded);
}

/** Whether a point is given. Refuses more than one. */
function onePoint(ways: readonly unknown[]): boolean {
  const said = ways.filter((way) => way !== undefined).length;
  if (said > 1)
    throw new BoughError("invalid_argument", "Give only one point: a message id, a message index or a seq.");
  return said === 1;
}
