// Remembered permissions: what was answered with "always", as the state of a session keeps it.
//   Permissions-1. A choice is for one agent and one tool; agents without an id share theirs.
//   Permissions-2. Of two choices the later one counts, and a revocation is one of them: a run that is taken up follows its answers
//       again, and an "always" from before the revocation must not come back with them.

import type { Json, JsonObject } from "../base/json.ts";

/** The name of the piece of state, and the version of what is kept under it. Version 1 knew tools and no agents. */
export const permissionsKey = "permissions";
export const permissionsVersion = 2;
/** Where session state keeps it. */
export const permissionsSlot = `@${permissionsKey}`;

/** What is kept of one agent and one tool. */
export type PermissionChoice = {
  readonly agentId?: string;
  readonly tool: string;
  readonly decision: "allow" | "deny" | "revoked";
  /** Who answered. */
  readonly by?: string;
  /** When it was answered or revoked. */
  readonly at: number;
  /** The question that was answered with it. */
  readonly interactionId?: string;
};

/** A permission that holds in a session until it is revoked. */
export interface RememberedPermission {
  /** The agent it holds for; absent for agents without an id, which share it. */
  readonly agentId?: string;
  readonly tool: string;
  readonly decision: "allow" | "deny";
  /** Who gave it, where that is known. */
  readonly by?: string;
  readonly at: number;
  /** The question that was answered with "always". */
  readonly interactionId?: string;
}

/** The choices in a session's state; none when they are of another version. */
export function choicesIn(state: JsonObject): readonly PermissionChoice[] {
  const { version, data } = Object(state[permissionsSlot]) as { version?: Json; data?: Json };
  return version === permissionsVersion ? asChoices(data) : [];
}

/** What is stored, without what is no choice. */
export function asChoices(data: Json | undefined): readonly PermissionChoice[] {
  return Array.isArray(data) ? (data.filter(isChoice) as unknown as PermissionChoice[]) : [];
}

function isChoice(item: Json): boolean {
  const { agentId = "", tool, decision, at } = Object(item) as JsonObject;
  return (
    typeof agentId === "string" &&
    typeof tool === "string" &&
    typeof at === "number" &&
    (decision === "allow" || decision === "deny" || decision === "revoked")
  );
}

/** The same choices under the name that session state has for them. */
export function storedChoices(choices: readonly PermissionChoice[]): JsonObject {
  return { [permissionsSlot]: { version: permissionsVersion, data: [...choices] } };
}

export function choiceOf(
  choices: readonly PermissionChoice[],
  agentId: string | undefined,
  tool: string,
): RememberedPermission | undefined {
  return choices.filter(isInForce).find((each) => each.agentId === agentId && each.tool === tool);
}

export function inForce(choices: readonly PermissionChoice[]): RememberedPermission[] {
  return choices.filter(isInForce);
}

function isInForce(choice: PermissionChoice): choice is PermissionChoice & { decision: "allow" | "deny" } {
  return choice.decision !== "revoked";
}

/** Permissions-2. */
export function remember(choices: readonly PermissionChoice[], choice: PermissionChoice): PermissionChoice[] {
  const before = choices.find((each) => each.agentId === choice.agentId && each.tool === choice.tool);
  if (before && (before.at > choice.at || isSameAnswer(before, choice))) return [...choices];
  return [...choices.filter((each) => each !== before), choice];
}

function isSameAnswer(before: PermissionChoice, { interactionId }: PermissionChoice): boolean {
  return interactionId !== undefined && before.interactionId === interactionId;
}

/** Revokes what holds for a tool: for one agent, or for all when none is named. */
export function revoke(
  choices: readonly PermissionChoice[],
  { agentId, tool }: { readonly agentId?: string; readonly tool: string },
  now: number,
): { readonly choices: PermissionChoice[]; readonly revoked: number } {
  let revoked = 0;
  const left = choices.map((each) => {
    const isMeant = each.tool === tool && (agentId === undefined || each.agentId === agentId) && isInForce(each);
    if (!isMeant) return each;
    revoked += 1;
    const { by: _, ...rest } = each;
    // A clock that is behind must not make the revocation the older of the two.
    return { ...rest, decision: "revoked" as const, at: Math.max(now, each.at) };
  });
  return { choices: left, revoked };
}
