// Grants: why calls run that need permission and that nobody was asked about. Owns what the log says of them.
//   G1. The fact stands in the log before its call begins.
//   G2. A call that runs again for the same reason, after a crash, has no second fact.

import type { Draft, Fact } from "../events/index.ts";
import type { PermissionGrant } from "../middleware/index.ts";

type Granted = Pick<Fact<"permission.granted">, "how" | "modeOf" | "interactionId">;

export class Grants {
  /** The newest of each call. */
  readonly #reasons = new Map<string, string>();

  /** Told of every such fact of the turn, in order. */
  see(fact: Fact<"permission.granted">): void {
    this.#reasons.set(fact.callId, reasonOf(fact));
  }

  /** What is to be written before the call begins; nothing when it is there (G2). */
  drafts(
    stamp: Pick<Draft<"permission.granted">, "id" | "at" | "turnId" | "callId" | "toolName">,
    grant: PermissionGrant,
  ) {
    if (this.#reasons.get(stamp.callId) === reasonOf(grant)) return [];
    const { how, modeOf, by, interactionId } = grant;
    const optional = {
      ...(modeOf && { modeOf }),
      ...(by !== undefined && { by }),
      ...(interactionId && { interactionId }),
    };
    return [{ ...stamp, type: "permission.granted", how, ...optional } satisfies Draft];
  }
}

function reasonOf({ how, modeOf, interactionId }: PermissionGrant | Granted): string {
  return `${how}\n${modeOf ?? ""}\n${interactionId ?? ""}`;
}
