import { BoughError } from "../../base/errors.ts";
import type { BranchRef } from "../../log/store.ts";
import { findBranches, findSiblings, holdBranch } from "../../sessions/branches.ts";
import type { Context } from "../../sessions/context.ts";
import { type EventQuery, isSelective, readSelected } from "../../sessions/flow.ts";
import { readEventPage } from "../../sessions/history.ts";
import type { BranchDetails, BranchPatch, ForkRequest, RevertRequest } from "../../sessions/index.ts";
import { branchBody, branchPage } from "../branch-pages.ts";
import type { Exchange } from "../exchange.ts";
import { AnswerRoom, jsonAnswer, messagesAnswer, messagesBefore } from "../pages.ts";
import { branchInfoBody } from "../pictures.ts";
import { Refusal } from "../refusal.ts";

type PageQuery = { limit?: number; cursor?: string };

export const branchHandlers = {
  async listBranches({ tenant, sessionId, query }: Exchange) {
    return branchPage(await findBranches(tenant.context, sessionId), query as PageQuery);
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
  async events({ tenant, ref, query, limits }: Exchange) {
    const page = await readPage(tenant.context, ref, query as EventQuery, limits.answerBytes);
    const events = await new AnswerRoom(limits.answerBytes).first(page);
    return jsonAnswer({ events }, { after: events.length < page.length ? page[events.length - 1]?.seq : page.after });
  },
  async messages({ tenant, ref, query, limits }: Exchange) {
    const { last = 200, before } = query as { last?: number; before?: string };
    const branch = await holdBranch(tenant.context, ref);
    return messagesAnswer(messagesBefore(ref, branch, before), last, limits);
  },
  async siblings({ tenant, ref, query }: Exchange) {
    return branchPage(await findSiblings(tenant.context, ref), query as PageQuery);
  },
};

function readPage(context: Context, ref: BranchRef, query: EventQuery, bytes: number) {
  return isSelective(query) ? readSelected(context, ref, query) : readEventPage(context, ref, { ...query, bytes });
}

/** A point is named in one way; whether it is named at all. */
function onePoint(ways: readonly unknown[]): boolean {
  const said = ways.filter((way) => way !== undefined).length;
  if (said > 1) throw new BoughError("invalid_argument", "Name the point in one way only.");
  return said === 1;
}
