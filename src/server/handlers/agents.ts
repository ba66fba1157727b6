import type { AgentConfig } from "../../wire/index.ts";
import type { NewDefinition } from "../definitions.ts";
import type { Exchange } from "../exchange.ts";

export const agentHandlers = {
  async listAgents({ tenant }: Exchange) {
    return { agents: await tenant.listAgents() };
  },
  createAgent: ({ tenant, body }: Exchange) => tenant.createAgent(body as NewDefinition),
  getAgent: (exchange: Exchange) => exchange.tenant.describeAgent(exchange.param("agentId")),
  updateAgent: (exchange: Exchange) =>
    exchange.tenant.updateAgent(exchange.param("agentId"), (exchange.body as { config: AgentConfig }).config),
  deleteAgent: (exchange: Exchange) => exchange.tenant.deleteAgent(exchange.param("agentId")),
};
