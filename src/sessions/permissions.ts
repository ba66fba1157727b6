// Permissions that are remembered in a session: listing and revoking them.

import { checkId } from "../base/ids.ts";
import { checkOptions, optionKeys } from "../base/options.ts";
import { choicesIn, inForce, type RememberedPermission, revoke, storedChoices } from "../projection/permissions.ts";
import type { Context } from "./context.ts";
import { getSession } from "./session.ts";
import { changeSessionState } from "./session-state.ts";

/** The permission to revoke. */
export interface RevokedPermission {
  /** Only this agent's (default: all agents'). */
  readonly agentId?: string;
  readonly tool: string;
}

const revokedKeys = optionKeys<RevokedPermission>({ agentId: true, tool: true });

export async function listPermissions(context: Context, sessionId: string): Promise<RememberedPermission[]> {
  return inForce(choicesIn((await getSession(context, sessionId)).state));
}

/** A run that writes to the state at the same time loses nothing, and neither does this. */
export async function revokePermission(
  context: Context,
  sessionId: string,
  revokes: RevokedPermission,
): Promise<number> {
  checkOptions("The options of revokePermission", revokes, revokedKeys);
  const { agentId, tool } = revokes;
  checkId(tool, "tool");
  const meant = agentId === undefined ? { tool } : { agentId, tool };
  let revoked = 0;
  await changeSessionState(context, sessionId, (state) => {
    const after = revoke(choicesIn(state), meant, context.clock.now());
    revoked = after.revoked;
    return revoked === 0 ? {} : storedChoices(after.choices);
  });
  return revoked;
}
