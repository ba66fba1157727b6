import type { CompactionInfo, CompactRequest, ContextUsage } from "../../wire/index.ts";
import type { Exchange } from "../exchange.ts";

export const compactionHandlers = {
  async compact(exchange: Exchange): Promise<CompactionInfo> {
    const agent = await exchange.agent();
    return agent.compact(exchange.ref, exchange.body as CompactRequest);
  },
  async contextUsage(exchange: Exchange): Promise<ContextUsage> {
    const agent = await exchange.agent();
    return agent.contextUsage(exchange.ref);
  },
  async uncompact({ tenant, ref, body }: Exchange) {
    const { compactionId } = body as { compactionId?: string };
    const compaction = await tenant.sessions.uncompact(ref, compactionId);
    return compaction ? { compaction } : {};
  },
  async listCompactions({ tenant, ref }: Exchange) {
    return { compactions: await tenant.sessions.listCompactions(ref) };
  },
  async listPins({ tenant, ref }: Exchange) {
    return { pins: await tenant.sessions.listPins(ref) };
  },
  pin: (exchange: Exchange) => exchange.tenant.sessions.pin(exchange.ref, exchange.param("messageId")),
  unpin: (exchange: Exchange) => exchange.tenant.sessions.unpin(exchange.ref, exchange.param("messageId")),
};
