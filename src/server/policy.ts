// Policy: whether an identity may perform an action. Its scopes are checked first, then the program's `authorize`.

import { BoughError } from "../base/errors.ts";
import type { Identity, Scope } from "../base/identity.ts";
import { refuse } from "../log/refusals.ts";
import type { RouteName } from "../wire/index.ts";
import { Refusal } from "./refusal.ts";

/** The ids that an action concerns: those of the request's path and those in its body. */
export interface ActionScope {
  readonly agentId?: string;
  readonly sessionId?: string;
  readonly branchId?: string;
  readonly runId?: string;
  readonly checkpointId?: string;
  readonly contentId?: string;
  readonly interactionId?: string;
  readonly messageId?: string;
  readonly compactionId?: string;
  readonly inputId?: string;
}

/** A route of a mount, as `mount.route`, with the names that the mount declares. */
export type MountAction = `${string}.${string}`;

/** An action: the name of a built-in route (the `operationId` of the OpenAPI document) or a route of a mount. */
export type Action = RouteName | MountAction;

/** The scope that an action needs; with two, either is sufficient. */
export interface Needs {
  readonly scope: Scope;
  readonly otherScope?: Scope;
}

/**
 * Decides about one action of an identity that has the scope for it. It is called for a mount's request as `mount.route`, and
 * again for each built-in action that the mount performs. False refuses with 403. A thrown `session_not_found` gives the response
 * of a missing session; any other error refuses with 500. It is called again at every heartbeat of an open stream.
 */
export type Authorize = (identity: Identity, action: Action, scope: ActionScope) => boolean | Promise<boolean>;

export function needScope(identity: Identity, scope: Scope): void {
  if (!identity.scopes.includes(scope)) throw new Refusal("forbidden", `This action needs scope "${scope}".`);
}

/** Whether the identity has the scope; a route with two needs one of them. */
export function hasScopeFor({ scopes }: Identity, { scope, otherScope }: Needs): boolean {
  return scopes.includes(scope) || (otherScope !== undefined && scopes.includes(otherScope));
}

/** Throws for an identity without the scope. */
export function checkScope(identity: Identity, needs: Needs): void {
  if (!hasScopeFor(identity, needs)) needScope(identity, needs.scope);
}

/** Calls `authorize`; throws if it refuses. */
export async function askProgram(
  authorize: Authorize | undefined,
  identity: Identity,
  action: Action,
  scope: ActionScope,
): Promise<void> {
  if (!authorize) return;
  let isAllowed: boolean;
  try {
    isAllowed = await authorize(identity, action, scope);
  } catch (error) {
    const { sessionId } = scope;
    // The same text as for a missing session, so that the two can't be distinguished.
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
  "messageId",
  "compactionId",
  "inputId",
] as const satisfies readonly (keyof ActionScope)[];

/** Ids of the path take precedence over those of the body, which may only name what is to be created. */
export function actionScope(params: Readonly<Record<string, string>>, body: unknown): ActionScope {
  const said = typeof body === "object" && body !== null ? (body as Record<string, unknown>) : {};
  const found = scopeKeys.flatMap((key): [string, string][] => {
    const value = params[key] ?? said[key];
    return typeof value === "string" ? [[key, value]] : [];
  });
  return Object.fromEntries(found);
}
