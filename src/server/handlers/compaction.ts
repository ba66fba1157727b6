import type {
  CompactionCheck,
  CompactionCheckRequest,
  CompactionInfo,
  CompactRequest,
  ContextUsage,
  PromptDiff,
  SentPrompt,
} from "../../wire/index.ts";
import type { Exchange } from "../exchange.ts";
import { byCreation, listAnswer, type PageQuery } from "../pages.ts";

export const compactionHandlers = {
  async compact(exchange: Exchange): Promise<CompactionInfo> {
    const agent = await exchange.agent();
    return agent.compact(exchange.ref, exchange.body as CompactRequest);
  },
  async contextUsage(exchange: Exchange): Promise<ContextUsage> {
    const agent = await exchange.agent();
    return agent.contextUsage(exchange.ref);
  },
  async checkCompaction(exchange: Exchange): Promise<CompactionCheck> {
    const agent = await exchange.agent();
    return agent.checkCompaction(exchange.ref, exchange.body as CompactionCheckRequest);
  },
  promptOf(exchange: Exchange): Promise<SentPrompt> {
    return exchange.tenant.sessions.promptOf(exchange.ref, exchange.param("messageId"));
  },
  diffPrompts(exchange: Exchange): Promise<PromptDiff> {
    const [from, to] = [exchange.param("messageId"), exchange.param("toMessageId")];
    return exchange.tenant.sessions.diffPrompts(exchange.ref, from, to);
  },
  async uncompact({ tenant, ref, body }: Exchange) {
    const { compactionId } = body as { compactionId?: string };
    return { compaction: await tenant.sessions.uncompact(ref, compactionId) };
  },
  async listCompactions({ tenant, ref, query, limits }: Exchange) {
    const items = await tenant.sessions.listCompactions(ref);
    return listAnswer("compactions", { items, ...byCreation, order: "newest" }, query as PageQuery, limits);
  },
  async listPins({ tenant, ref }: Exchange) {
    return { pins: await tenant.sessions.listPins(ref) };
  },
  pin: (exchange: Exchange) => exchange.tenant.sessions.pin(exchange.ref, exchange.param("messageId")),
  unpin: (exchange: Exchange) => exchange.tenant.sessions.unpin(exchange.ref, exchange.param("messageId")),
};
