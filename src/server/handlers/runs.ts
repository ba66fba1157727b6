import type { Agent } from "../../agent/index.ts";
import { parentOf } from "../../runs/children/port.ts";
import { askerOf, findRoot } from "../../runs/index.ts";
import { momentOf, runsBody } from "../../sessions/bodies.ts";
import { readBranch } from "../../sessions/branches.ts";
import { whyNotOpen } from "../../sessions/interactions.ts";
import type {
  InputBody,
  InterruptBody,
  ResponseAnswer,
  ResponseBody,
  RunBody,
  SignalAnswer,
  SignalBody,
} from "../../wire/index.ts";
import type { Identity } from "../auth.ts";
import type { Exchange } from "../exchange.ts";
import { listAnswer, type PageQuery } from "../pages.ts";
import { needScope } from "../policy.ts";
import { Refusal } from "../refusal.ts";
import { stateAnswer } from "../state-answer.ts";
import { clientGraceMs } from "../submissions.ts";
import type { Tenant } from "../tenant.ts";

const byStart = { idOf: ({ runId }: RunBody) => runId, timeOf: ({ startedAt }: RunBody) => startedAt };

export const runHandlers = {
  async listRuns(exchange: Exchange) {
    const { id } = await exchange.agent();
    const { tenant, ref, limits } = exchange;
    const { agent = "own", ...page } = exchange.query as PageQuery & { agent?: "own" | "any" };
    const runs = runsBody(await momentOf(tenant.context, ref));
    const items = agent === "any" ? runs : runs.filter(({ agentId }) => agentId === id);
    return listAnswer("runs", { items, ...byStart, order: "oldest" }, page, limits);
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
  signal: (exchange: Exchange) => signal(exchange, exchange.identity, exchange.body as SignalBody),
  async state(exchange: Exchange) {
    await exchange.agent();
    const { last = 200, before: upTo } = exchange.query as { last?: number; before?: string };
    const moment = await momentOf(exchange.tenant.context, exchange.ref);
    return stateAnswer(moment, last, exchange.limits, upTo === undefined ? {} : { upTo });
  },
};

export async function submit(exchange: Exchange, identity: Identity, body: InputBody, key: string | undefined) {
  const agent = await exchange.agent();
  const { tenant, ref } = exchange;
  return tenant.submissions.submit({ agent, ref, body, identity, ...(key !== undefined && { key }) });
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
  const { interactions } = await readBranch(tenant.context, ref);
  const kind = interactions.find(({ id }) => id === interactionId)?.kind;
  if (kind !== undefined) needScope(identity, scopeToAnswer(kind));
  // What opens in this very moment may need the scope that is missing.
  else if (!answerScopes.every((scope) => identity.scopes.includes(scope))) {
    throw await whyNotOpen(tenant.context, ref, interactionId);
  }
  // A child's turn goes on with the turn that waits for it.
  const root = await findRoot(tenant.context, await askerOf(tenant.context, ref, interactionId));
  const { uncommittedTurn } = await readBranch(tenant.context, root);
  // That of a child which no call waits for is continued by the agent at the root of its chain.
  const rootId = parentOf(uncommittedTurn?.metadata)?.rootId ?? uncommittedTurn?.runs.at(-1)?.agentId;
  const agent = await agentOf(tenant, rootId, asked);
  const by = identity.user === undefined ? {} : { by: identity.user };
  const run = await agent.respond(ref, interactionId, answer, { ...by, clientGraceMs });
  const runId = run && (await tenant.submissions.takenUp(root, run));
  return { interactionId, ...(runId !== undefined && { runId }) };
}

async function signal(exchange: Exchange, identity: Identity, body: SignalBody): Promise<SignalAnswer> {
  const asked = await exchange.agent();
  const { ref, tenant } = exchange;
  const root = await findRoot(tenant.context, ref);
  const { uncommittedTurn } = await readBranch(tenant.context, root);
  const rootId = parentOf(uncommittedTurn?.metadata)?.rootId ?? uncommittedTurn?.runs.at(-1)?.agentId;
  const agent = await agentOf(tenant, rootId, asked);
  const signalId = body.id ?? exchange.idempotencyKey ?? tenant.context.ids.next();
  const by = identity.user === undefined ? {} : { by: identity.user };
  const run = await agent.signal(ref, { ...body, id: signalId, ...by }, { clientGraceMs });
  const runId = run && (await tenant.submissions.takenUp(root, run));
  return { signalId, ...(runId !== undefined && { runId }) };
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
