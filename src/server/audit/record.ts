import * as v from "valibot";
import { idSchema, type Route, type RouteName, routes } from "../../wire/index.ts";
import type { Attempt } from "../attempt.ts";
import type { AuditFact } from "./fact.ts";

/** The record of an attempt: names and outcomes, never the content of messages. */
export function recordOf(attempt: Attempt, status: number, at: number): AuditFact {
  const { requestId, transport, address, identity, code } = attempt;
  const action = attempt.action ?? actionOf(attempt);
  const { user, credential } = identity ?? {};
  return {
    at,
    action: action ?? "unknown",
    requestId,
    transport,
    status,
    ...idsOf(attempt),
    ...detailsOf(attempt),
    ...(user !== undefined && { user: user.slice(0, 256) }),
    ...(credential !== undefined && { credential: credential.slice(0, 64) }),
    ...(address !== undefined && { address }),
    ...(code !== undefined && { code }),
  };
}

/** Sanitises ids of a path that was not validated yet. */
function idsOf({ scope }: Attempt): Partial<AuditFact> {
  return Object.fromEntries(Object.entries(scope).filter(([, id]) => v.is(idSchema, id)));
}

interface Said {
  readonly config?: { readonly permissionMode?: AuditFact["mode"] };
  readonly answer?: { readonly approved?: unknown; readonly choice?: unknown };
}

function detailsOf({ action, body, result }: Attempt): Partial<AuditFact> {
  const { config, answer } = (typeof body === "object" && body !== null ? body : {}) as Said;
  const { runId, id } = (typeof result === "object" && result !== null ? result : {}) as Record<string, unknown>;
  const isCreated = action !== undefined && builtIn.get(action)?.status === 201;
  const decision = decisionOf(answer);
  return {
    ...(config?.permissionMode && { mode: config.permissionMode }),
    ...(decision && { decision }),
    ...(typeof runId === "string" && { runId }),
    ...(isCreated && typeof id === "string" && { createdId: id }),
  };
}

function decisionOf(answer: Said["answer"]): AuditFact["decision"] {
  if (answer?.approved === true) return answer.choice === "always" ? "always" : "approved";
  return answer?.approved === false ? "denied" : undefined;
}

/** Built-in routes by action. */
const builtIn = new Map<string, Route>(Object.entries(routes));

const patterns = (Object.entries(routes) as [RouteName, Route][]).map(([name, { method, path }]) => ({
  name,
  method,
  pattern: new RegExp(`^${path.replace(/[.]/g, "\\.").replace(/:\w+/g, "[^/]+")}$`),
}));

/** The route of a request that was refused before it was routed. */
function actionOf({ method, url }: Attempt): RouteName | undefined {
  const { pathname } = new URL(url);
  return patterns.find((each) => each.method === method && each.pattern.test(pathname))?.name;
}
