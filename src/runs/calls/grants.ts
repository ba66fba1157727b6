// Grants: why calls that need permission run without asking. Owns the facts about them.
//   Grants-1. The fact stands in the log before its call begins.
//   Grants-2. A call that runs again for the same reason, after a crash, has no second fact.

import { type DraftSource, permissionGranted } from "../../events/drafts.ts";
import type { Draft, Fact } from "../../events/index.ts";
import type { PermissionGrant } from "../../middleware/index.ts";

type Granted = Pick<Fact<"permission.granted">, "how" | "modeOf" | "interactionId">;

export class Grants {
  /** The newest of each call. */
  readonly #reasons = new Map<string, string>();

  /** Told of every such fact of the turn, in order. */
  see(fact: Fact<"permission.granted">): void {
    this.#reasons.set(fact.callId, reasonOf(fact));
  }

  /** What is to be written before the call begins; nothing when it is there (Grants-2). */
  drafts(
    source: DraftSource,
    call: Pick<Draft<"permission.granted">, "turnId" | "callId" | "toolName">,
    grant: PermissionGrant,
  ): Draft[] {
    const { turnId, callId, toolName } = call;
    if (this.#reasons.get(callId) === reasonOf(grant)) return [];
    const { how, modeOf, by, interactionId } = grant;
    const optional = {
      ...(modeOf && { modeOf }),
      ...(by !== undefined && { by }),
      ...(interactionId && { interactionId }),
    };
    return [permissionGranted(source, turnId, { callId, toolName, how, ...optional })];
  }
}

function reasonOf({ how, modeOf, interactionId }: PermissionGrant | Granted): string {
  return `${how}\n${modeOf ?? ""}\n${interactionId ?? ""}`;
}
