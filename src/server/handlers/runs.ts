import type { Agent } from "../../agent/index.ts";
import { momentOf, runsBody } from "../../sessions/bodies.ts";
import { readBranch } from "../../sessions/branches.ts";
import { whyNotOpen } from "../../sessions/interactions.ts";
import type { InputBody, InterruptBody, ResponseAnswer, ResponseBody, RunBody } from "../../wire/index.ts";
import type { Identity } from "../auth.ts";
import type { Exchange } from "../exchange.ts";
import { needScope } from "../policy.ts";
import { Refusal } from "../refusal.ts";
import { stateAnswer } from "../state-answer.ts";
import { clientGraceMs } from "../submissions.ts";
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
  submitInput: (exchange: Exchange) =>
    submit(exchange, exchange.identity, exchange.body as InputBody, exchange.idempotencyKey),
  interrupt: (exchange: Exchange) => interrupt(exchange, exchange.body as InterruptBody),
  respond: (exchange: Exchange) => respond(exchange, exchange.identity, exchange.body as ResponseBody),
  async state(exchange: Exchange) {
    await exchange.agent();
    const { last = 200 } = exchange.query as { last?: number };
    return stateAnswer(await momentOf(exchange.tenant.context, exchange.ref), last, exchange.limits);
  },
};

export async function submit(exchange: Exchange, identity: Identity, body: InputBody, key: string | undefined) {
  const agent = await exchange.agent();
  const { tenant, ref } = exchange;
  const agentId = exchange.param("agentId");
  return tenant.submissions.submit({ agent, agentId, ref, body, identity, ...(key !== undefined && { key }) });
}

export async function interrupt(exchange: Exchange, body: InterruptBody) {
  return exchange.tenant.submissions.interrupt(await exchange.agent(), exchange.ref, body);
}

export async function respond(
  exchange: Exchange,
  identity: Identity,
  { interactionId, answer }: ResponseBody,
): Promise<ResponseAnswer> {
  const asked = await exchange.agent();
  const { ref, tenant } = exchange;
  const { interactions, uncommittedTurn } = await readBranch(tenant.context, ref);
  const kind = interactions.find(({ id }) => id === interactionId)?.kind;
  if (kind !== undefined) needScope(identity, scopeToAnswer(kind));
  // What opens in this very moment may need the scope that is missing.
  else if (!answerScopes.every((scope) => identity.scopes.includes(scope))) {
    throw await whyNotOpen(tenant.context, ref, interactionId);
  }
  const agent = await agentOf(tenant, uncommittedTurn?.runs.at(-1)?.agentId, asked);
  const by = identity.user === undefined ? {} : { by: identity.user };
  const run = await agent.respond(ref, interactionId, answer, { ...by, clientGraceMs });
  const runId = run && (await tenant.submissions.takenUp(ref, run));
  return { interactionId, ...(runId !== undefined && { runId }) };
}

const answerScopes = ["approve", "run"] as const;

/** The scope of an answer: results of client tools need `run`; every other answer is a decision and needs `approve`. */
function scopeToAnswer(kind: string): (typeof answerScopes)[number] {
  return kind === "client-tool" ? "run" : "approve";
}

/** A turn continues with the agent that started it; if that no longer exists, with the requested one. */
async function agentOf(tenant: Tenant, agentId: string | undefined, asked: Agent): Promise<Agent> {
  if (agentId === undefined || agentId === asked.id) return asked;
  return tenant.agents.get(agentId).catch((error: unknown) => {
    if (error instanceof Refusal && error.problem.code === "agent_not_found") return asked;
    throw error;
  });
}
