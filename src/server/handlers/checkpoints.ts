import { refuse } from "../../log/index.ts";
import { branchBody, branchInfoBody, messagesBefore } from "../../sessions/bodies.ts";
import type { Checkpoint } from "../../sessions/index.ts";
import type { CheckpointBody } from "../../wire/index.ts";
import type { Exchange } from "../exchange.ts";
import { byCreation, listAnswer, messagesAnswer, type PageQuery } from "../pages.ts";
import { stateAnswer } from "../state-answer.ts";

export const checkpointHandlers = {
  async listCheckpoints({ tenant, ref, query, limits }: Exchange) {
    const items: readonly CheckpointBody[] = await tenant.sessions.listCheckpoints(ref);
    return listAnswer("checkpoints", { items, ...byCreation, order: "newest" }, query as PageQuery, limits);
  },
  saveCheckpoint({ tenant, ref, body }: Exchange): Promise<CheckpointBody> {
    const { checkpointId, label } = body as { checkpointId?: string; label?: string };
    return tenant.sessions.saveCheckpoint(ref, {
      ...(checkpointId !== undefined && { id: checkpointId }),
      ...(label !== undefined && { label }),
    });
  },
  async loadCheckpoint(exchange: Exchange) {
    const { tenant, ref } = exchange;
    const { last = Number.POSITIVE_INFINITY, before } = exchange.query as { last?: number; before?: string };
    const checkpoint = await find(exchange);
    const branch = await tenant.sessions.loadBranch(ref, { at: checkpoint.seq });
    if (before === undefined) return stateAnswer({ branch, active: null }, last, exchange.limits, { checkpoint });
    const messages = messagesBefore(ref, branch, before);
    return messagesAnswer(messages, last, exchange.limits);
  },
  async forkCheckpoint(exchange: Exchange) {
    const { tenant, ref, body } = exchange;
    const agent = await exchange.agent();
    const { seq } = await find(exchange);
    const { id } = await agent.forkBranch(ref, { fromSeq: seq, ...(body as { newBranchId?: string }) });
    return branchBody(await tenant.sessions.getBranch({ sessionId: ref.sessionId, branchId: id }));
  },
  async revertCheckpoint(exchange: Exchange) {
    const { tenant, ref } = exchange;
    const checkpointId = exchange.param("checkpointId");
    return branchInfoBody(await tenant.sessions.revertBranch(ref, { checkpointId }));
  },
};

async function find(exchange: Exchange): Promise<Checkpoint> {
  const { tenant, ref } = exchange;
  const checkpointId = exchange.param("checkpointId");
  const found = (await tenant.sessions.listCheckpoints(ref)).find(({ id }) => id === checkpointId);
  if (found) return found;
  throw refuse.checkpointNotFound(ref, checkpointId);
}
