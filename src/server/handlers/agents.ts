import type { AgentSummary } from "../../wire/index.ts";
import type { Defined, NewDefinition } from "../definitions.ts";
import type { Exchange } from "../exchange.ts";
import { type GraphQuery, graphAnswer } from "../graphs.ts";
import { listAnswer, type PageQuery } from "../pages.ts";

const byId = { idOf: ({ id }: AgentSummary) => id, timeOf: ({ createdAt = 0 }: AgentSummary) => createdAt };

export const agentHandlers = {
  async listAgents({ tenant, query, limits }: Exchange) {
    const items = await tenant.agents.list();
    return listAnswer("agents", { items, ...byId, order: "newest" }, query as PageQuery, limits);
  },
  createAgent: ({ tenant, body }: Exchange) => tenant.agents.create(body as NewDefinition),
  getAgent: (exchange: Exchange) => exchange.tenant.agents.describe(exchange.param("agentId")),
  updateAgent: (exchange: Exchange) =>
    exchange.tenant.agents.update(exchange.param("agentId"), exchange.body as Defined),
  getGraph: (exchange: Exchange) =>
    graphAnswer(exchange.tenant, exchange.param("agentId"), exchange.query as GraphQuery),
  deleteAgent: (exchange: Exchange) => exchange.tenant.agents.delete(exchange.param("agentId")),
};
