import type { AgentConfig } from "../../wire/index.ts";
import type { NewDefinition } from "../definitions.ts";
import type { Exchange } from "../exchange.ts";

export const agentHandlers = {
  async listAgents({ tenant }: Exchange) {
    return { agents: await tenant.agents.list() };
  },
  createAgent: ({ tenant, body }: Exchange) => tenant.agents.create(body as NewDefinition),
  getAgent: (exchange: Exchange) => exchange.tenant.agents.describe(exchange.param("agentId")),
  updateAgent: (exchange: Exchange) =>
    exchange.tenant.agents.update(exchange.param("agentId"), (exchange.body as { config: AgentConfig }).config),
  deleteAgent: (exchange: Exchange) => exchange.tenant.agents.delete(exchange.param("agentId")),
};
