// ‹2/3›: which messages have other versions, and where a version leads.

import { type BranchUse, type Message, partings } from "../data/bough.ts";
import { visitsOf } from "../data/visits.ts";

export interface Versions {
  /** Which of them is on the screen, from 0. */
  readonly current: number;
  readonly branchIds: readonly string[];
  /** The last message that they share. */
  readonly after: string | undefined;
}

export interface VersionIndex {
  readonly byMessage: ReadonlyMap<string, Versions>;
  /** Those that go on where this branch ends. */
  readonly atEnd: Versions | undefined;
}

export function versionsOf(
  branches: BranchUse["branches"],
  { sessionId, branchId }: { readonly sessionId: string; readonly branchId: string },
  messages: readonly Message[],
): VersionIndex {
  const visits = new Map(visitsOf(sessionId).map((id, i) => [id, i]));
  // What was looked at here comes before what was only written to.
  const rank = ({ id, lastActivity }: { id: string; lastActivity: number }) => {
    const visit = visits.get(id);
    return visit === undefined ? lastActivity : 1e15 + visit;
  };
  const found = partings(branches, branchId, { rank });
  const byMessage = new Map<string, Versions>();
  let atEnd: Versions | undefined;
  if (found.length === 0) return { byMessage, atEnd };
  const indexOf = new Map(messages.map(({ id }, i) => [id, i]));
  for (const { afterMessageId: after, versions, current } of found) {
    const before = after === undefined ? -1 : indexOf.get(after);
    if (before === undefined) continue;
    const entry: Versions = { current, branchIds: versions.map(({ newest }) => newest), after };
    const message = shownAfter(messages, before);
    if (message) byMessage.set(message.id, entry);
    else if (before === messages.length - 1) atEnd = entry;
  }
  return { byMessage, atEnd };
}

const prefix = "after:";

/** A mark for what comes after a message: on another branch, it has another id. */
export function markAfter(messageId: string | undefined): string {
  return prefix + (messageId ?? "");
}

/** The message that a mark means on this branch. */
export function resolveMark(mark: string | undefined, messages: readonly Message[]): string | undefined {
  if (!mark?.startsWith(prefix)) return mark;
  const after = mark.slice(prefix.length);
  const before = after === "" ? -1 : messages.findIndex(({ id }) => id === after);
  if (after !== "" && before < 0) return undefined;
  return shownAfter(messages, before)?.id ?? (after || undefined);
}

/** The next message that has a row of its own: results are drawn with their calls. */
function shownAfter(messages: readonly Message[], index: number): Message | undefined {
  for (let i = index + 1; i < messages.length; i++) if (messages[i]!.role !== "tool") return messages[i];
  return undefined;
}
