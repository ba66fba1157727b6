// Session-scoped state: shared by all branches of a session, so it is read when it is needed and changed by patches that
// lose nothing of what other runs write at the same time.

import { BoughError } from "../base/errors.ts";
import type { JsonObject } from "../base/json.ts";
import type { Context } from "./context.ts";
import { getSession, updateSession } from "./session.ts";

export async function sessionState(context: Context, sessionId: string): Promise<JsonObject> {
  return (await getSession(context, sessionId)).state;
}

export async function sessionMetadata(context: Context, sessionId: string): Promise<JsonObject> {
  return (await getSession(context, sessionId)).metadata;
}

/** Decides a merge patch on the newest state and writes it; decides again after a concurrent write. */
export async function changeSessionState(
  context: Context,
  sessionId: string,
  change: (state: JsonObject) => JsonObject,
): Promise<JsonObject> {
  for (;;) {
    const { state, version } = await getSession(context, sessionId);
    const patch = change(state);
    if (Object.keys(patch).length === 0) return state;
    try {
      return (await updateSession(context, sessionId, { state: patch }, { expectedVersion: version })).state;
    } catch (error) {
      if (!BoughError.is(error, "version_conflict")) throw error;
    }
  }
}
