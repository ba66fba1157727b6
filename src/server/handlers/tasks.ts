import type { Exchange } from "../exchange.ts";

export const taskHandlers = {
  async listTasks({ tenant, ref }: Exchange) {
    return { tasks: await tenant.sessions.listTasks(ref) };
  },
  async cancelTask(exchange: Exchange) {
    const agent = await exchange.agent();
    await agent.cancelTask(exchange.ref, exchange.param("taskId"));
  },
};
