// Policy: whether an identity may do what it asks for. First its scopes, then the program's own `authorize`.

import { BoughError } from "../base/errors.ts";
import type { Identity, Scope } from "../base/identity.ts";
import { refuse } from "../log/refusals.ts";
import type { Route, RouteName } from "../wire/index.ts";
import { Refusal } from "./refusal.ts";

/** What an action is about: the ids of the request's path, and those that its body names. */
export interface ActionScope {
  readonly agentId?: string;
  readonly sessionId?: string;
  readonly branchId?: string;
  readonly runId?: string;
  readonly checkpointId?: string;
  readonly contentId?: string;
  readonly interactionId?: string;
}

/**
 * Decides about one action of an identity that has the scope for it. `action` is the name of a route (the `operationId` of
 * the OpenAPI document). False refuses with 403; a thrown `session_not_found` is answered as if there were no such session;
 * anything else that is thrown refuses with 500. Asked again at every heartbeat of an open stream.
 */
export type Authorize = (identity: Identity, action: RouteName, scope: ActionScope) => boolean | Promise<boolean>;

export function needScope(identity: Identity, scope: Scope): void {
  if (!identity.scopes.includes(scope)) throw new Refusal("forbidden", `Scope "${scope}" is needed.`);
}

/** Whether the scopes let the identity in; a route with two needs one of them. */
export function hasScopeFor({ scopes }: Identity, { scope, otherScope }: Route): boolean {
  return scopes.includes(scope) || (otherScope !== undefined && scopes.includes(otherScope));
}

/** Refuses an identity without the scope. */
export function checkScope(identity: Identity, route: Route): void {
  if (!hasScopeFor(identity, route)) needScope(identity, route.scope);
}

/** Asks the program; refuses when it does. */
export async function askProgram(
  authorize: Authorize | undefined,
  identity: Identity,
  action: RouteName,
  scope: ActionScope,
): Promise<void> {
  if (!authorize) return;
  let isAllowed: boolean;
  try {
    isAllowed = await authorize(identity, action, scope);
  } catch (error) {
    const { sessionId } = scope;
    // In the words of a session that is not there, so that nothing tells the two apart.
    if (sessionId !== undefined && BoughError.is(error, "session_not_found")) throw refuse.sessionNotFound(sessionId);
    throw error;
  }
  if (isAllowed !== true) throw new Refusal("forbidden");
}

const scopeKeys = [
  "agentId",
  "sessionId",
  "branchId",
  "runId",
  "checkpointId",
  "contentId",
  "interactionId",
] as const satisfies readonly (keyof ActionScope)[];

/** The ids of the path before those of the body: what a body names beside them is a wish, not a place. */
export function actionScope(params: Readonly<Record<string, string>>, body: unknown): ActionScope {
  const said = typeof body === "object" && body !== null ? (body as Record<string, unknown>) : {};
  const found = scopeKeys.flatMap((key): [string, string][] => {
    const value = params[key] ?? said[key];
    return typeof value === "string" ? [[key, value]] : [];
  });
  return Object.fromEntries(found);
}
