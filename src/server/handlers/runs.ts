import type { Agent } from "../../agent/index.ts";
import type { JsonObject } from "../../base/json.ts";
import type { textOf } from "../../events/index.ts";
import { holdBranch } from "../../sessions/branches.ts";
import type {
  ContextUsageBody,
  InputBody,
  InterruptBody,
  ResponseAnswer,
  ResponseBody,
  RunBody,
} from "../../wire/index.ts";
import type { Identity } from "../auth.ts";
import type { Exchange } from "../exchange.ts";
import { momentOf, runsBody, stateBody } from "../pictures.ts";
import { Refusal } from "../refusal.ts";
import type { Tenant } from "../tenant.ts";

export const runHandlers = {
  async listRuns(exchange: Exchange) {
    const { id } = await exchange.agent();
    const { tenant, ref, query } = exchange;
    const runs = runsBody(await momentOf(tenant.context, ref));
    const isAny = (query as { agent?: "own" | "any" }).agent === "any";
    return { runs: isAny ? runs : runs.filter(({ agentId }) => agentId === id) };
  },
  async activeRun(exchange: Exchange): Promise<RunBody | null> {
    await exchange.agent();
    return (await momentOf(exchange.tenant.context, exchange.ref)).active;
  },
  async getRun(exchange: Exchange): Promise<RunBody> {
    await exchange.agent();
    const runId = exchange.param("runId");
    const runs = runsBody(await momentOf(exchange.tenant.context, exchange.ref));
    const run = runs.find((each) => each.runId === runId);
    if (!run) throw new Refusal("run_not_found", `There is no run "${runId}".`, { ...exchange.ref, runId });
    return run;
  },
  submitInput: (exchange: Exchange) => submit(exchange, exchange.body as InputBody, exchange.idempotencyKey),
  interrupt: (exchange: Exchange) => interrupt(exchange, exchange.body as InterruptBody),
  respond: (exchange: Exchange) => respond(exchange, exchange.identity, exchange.body as ResponseBody),
  async state(exchange: Exchange) {
    await exchange.agent();
    const { last = 200 } = exchange.query as { last?: number };
    return stateBody(await momentOf(exchange.tenant.context, exchange.ref), last);
  },
  async contextUsage(exchange: Exchange): Promise<ContextUsageBody> {
    await exchange.agent();
    const branch = await holdBranch(exchange.tenant.context, exchange.ref);
    const messages = branch.transcript();
    const usage = branch.turns.at(-1)?.usage as JsonObject | undefined;
    return {
      seq: branch.seq,
      messages: messages.length,
      characters: messages.reduce((sum, message) => sum + sizeOf(message), 0),
      ...(usage && { lastUsage: usage }),
    };
  },
};

export async function submit(exchange: Exchange, body: InputBody, key: string | undefined) {
  const agent = await exchange.agent();
  const { tenant, ref } = exchange;
  return tenant.submissions.submit({ agent, ref, body, ...(key !== undefined && { key }) });
}

export async function interrupt(exchange: Exchange, body: InterruptBody) {
  return exchange.tenant.submissions.interrupt(await exchange.agent(), exchange.ref, body);
}

export async function respond(
  exchange: Exchange,
  { user }: Identity,
  { interactionId, answer }: ResponseBody,
): Promise<ResponseAnswer> {
  const asked = await exchange.agent();
  const { ref, tenant } = exchange;
  const { uncommittedTurn } = await holdBranch(tenant.context, ref);
  const agent = await agentOf(tenant, uncommittedTurn?.runs.at(-1)?.agentId, asked);
  const by = user === undefined ? {} : { by: user };
  const run = await agent.respond(ref, interactionId, answer, { ...by, ...tenant.submissions.asking() });
  const runId = run && (await tenant.submissions.takenUp(ref, run));
  return { interactionId, ...(runId !== undefined && { runId }) };
}

/** A turn goes on with the agent that it began with, whichever was asked; with that one, when its own is gone. */
async function agentOf(tenant: Tenant, agentId: string | undefined, asked: Agent): Promise<Agent> {
  if (agentId === undefined || agentId === asked.id) return asked;
  return tenant.agent(agentId).catch((error: unknown) => {
    if (error instanceof Refusal) return asked;
    throw error;
  });
}

function sizeOf(message: Parameters<typeof textOf>[0]): number {
  return typeof message.content === "string" ? message.content.length : JSON.stringify(message.content).length;
}
