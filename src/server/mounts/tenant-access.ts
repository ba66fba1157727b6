// TenantAccess: what a mount can do in a tenant on behalf of its caller.
//   TenantAccess-1. Every action is the built-in route of its name: the same schemas, scopes, `authorize`, handlers and audit records.
//   TenantAccess-2. It can't reach another tenant, nor anything that no built-in route reaches.

import * as v from "valibot";
import { momentOf, sessionBody } from "../../sessions/bodies.ts";
import { needBranch } from "../../sessions/branch-record.ts";
import { type Route, type RouteName, routes } from "../../wire/index.ts";
import type { Attempt } from "../attempt.ts";
import type { Identity } from "../auth.ts";
import { parse } from "../body.ts";
import { checkedKey, type Exchange } from "../exchange.ts";
import { handlers } from "../handlers/index.ts";
import { interrupt, respond, submit } from "../handlers/runs.ts";
import { actionScope, checkScope } from "../policy.ts";
import { problemOf } from "../refusal.ts";
import type { Call } from "./call.ts";
import type { MountPlace, MountTenant } from "./mount.ts";

const position = v.pipe(v.number(), v.safeInteger(), v.minValue(0));

/** The arguments of an action: ids, and a body that is validated by its schema. */
interface Asked {
  readonly params?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** Validates the ids and calls `authorize`; returns what a handler may use. */
export type Admit = (
  action: RouteName,
  attempt: Attempt,
  asked: { params: Readonly<Record<string, string>>; body: unknown },
) => Promise<Exchange>;

export interface TenantAccessOptions {
  readonly call: Call;
  readonly attempt: Attempt;
  readonly identity: Identity;
  readonly admit: Admit;
  /** Called with an action's outcome. */
  readonly record: (attempt: Attempt, status: number) => void;
}

export function tenantAccess(options: TenantAccessOptions): MountTenant {
  const perform = <T>(action: RouteName, asked: Asked, work: (exchange: Exchange) => Promise<T>) =>
    performAction(options, action, asked, work);
  const handled = <T>(action: RouteName, asked: Asked) =>
    perform(action, asked, async (exchange) => (await handlers[action](exchange)) as T);
  const { identity, call } = options;
  const of = ({ agentId, sessionId, branchId }: MountPlace) => ({ agentId, sessionId, branchId });
  return {
    listAgents: () => perform("listAgents", {}, ({ tenant }) => tenant.agents.list()),
    createSession: (body = {}) => handled("createSession", { body }),
    getSession: (sessionId) => handled("getSession", { params: { sessionId } }),
    listSessions: (query = {}) =>
      perform("searchSessions", { body: query }, async ({ tenant }) => {
        const { sessions, cursor } = await tenant.sessions.listSessions(query);
        return { sessions: sessions.map(sessionBody), ...(cursor !== undefined && { cursor }) };
      }),
    forkBranch: (place, body = {}) => handled("forkBranch", { params: of(place), body }),
    readBranch: (place) =>
      perform("state", { params: of(place) }, async (exchange) => {
        await exchange.agent();
        const { branch, active } = await momentOf(exchange.tenant.context, exchange.ref);
        return { branch, activeRun: active };
      }),
    submitInput: (place, body, { idempotencyKey } = {}) =>
      perform("submitInput", { params: of(place), body }, (exchange) =>
        submit(exchange, identity, exchange.body as typeof body, checkedKey(idempotencyKey)),
      ),
    watch: (place, { after } = {}) =>
      perform("liveEvents", { params: of(place) }, async (exchange) => {
        await exchange.agent();
        const { tenant, ref, limits } = exchange;
        const from = after === undefined ? (await needBranch(tenant.context.store, ref)).seq : parse(position, after);
        call.takePlace();
        return call.frames(await tenant.feeds.open(ref, from, limits));
      }),
    respond: (place, body) =>
      perform("respond", { params: of(place), body }, (exchange) =>
        respond(exchange, identity, exchange.body as typeof body),
      ),
    interrupt: (place, body = {}) =>
      perform("interrupt", { params: of(place), body }, (exchange) =>
        interrupt(exchange, exchange.body as typeof body),
      ),
  };
}

/** TenantAccess-1. */
async function performAction<T>(
  { call, attempt: request, identity, admit, record }: TenantAccessOptions,
  action: RouteName,
  { params = {}, body }: Asked,
  work: (exchange: Exchange) => Promise<T>,
): Promise<T> {
  const route: Route = routes[action];
  const attempt = request.operation(action, identity, actionScope(params, undefined));
  try {
    call.checkAllowed();
    checkScope(identity, route);
    const parsed = route.body && parse(route.body, body);
    const exchange = await admit(action, attempt, { params, body: parsed });
    attempt.result = await work(exchange);
    record(attempt, route.status);
    return attempt.result as T;
  } catch (error) {
    const { status, code } = problemOf(error);
    attempt.code = code;
    record(attempt, status);
    throw error;
  }
}
