// Files that a child made, for its parent.
//   ChildFiles-1. They are content of the parent's branch before the call has its result: a child's branch is no ancestor, and it may
//       be deleted.
//   ChildFiles-2. A call that runs again after a crash writes for each file what is missing, and nothing twice.

import { contentAttached } from "../../events/drafts.ts";
import { type FilePart, fileReference } from "../../events/files.ts";
import type { Fact, UnknownFact } from "../../events/index.ts";
import { getContent, putContent } from "../../sessions/content.ts";
import { tellError } from "../redact-errors.ts";
import type { ActiveTurn } from "../turn/active-turn.ts";
import { factsOf } from "../turn/facts-of.ts";
import type { ChildAddress } from "./address.ts";
import { type ClosedChild, isGone } from "./look.ts";

type Attached = Extract<Fact, { type: "content.attached" }>;

/** What the child's tools and model attached, as files of the parent's branch. */
export async function adoptFiles(
  turn: ActiveTurn,
  callId: string,
  { ref, closed }: { readonly ref: ChildAddress["ref"]; readonly closed: ClosedChild },
): Promise<readonly FilePart[]> {
  const { context, held } = turn;
  const { from, to } = closed.turn;
  const facts = await factsOf(context, ref, { from, before: to + 1 }).catch((error: unknown) => {
    // Deleted since.
    if (isGone(error)) return [];
    throw error;
  });
  const made = new Map<string, Attached>();
  for (const fact of facts) if (isArtifact(fact)) made.set(fact.contentId, fact);
  const files: FilePart[] = [];
  for (const { contentId: id, mediaType, name, size, meta } of made.values()) {
    try {
      await adopt(turn, ref, id);
    } catch (error) {
      turn.emitter.live({ type: "content-fail", contentId: id, error: tellError(turn.plan, error) });
      continue;
    }
    if (!turn.attached.has(`${callId} ${id}`)) {
      const about = { contentId: id, mediaType, size, ...(name !== undefined && { name }), ...(meta && { meta }) };
      await turn.write(contentAttached(context, { turnId: held.turnId, callId, kind: "artifact", ...about }));
    }
    files.push(fileReference({ id, mediaType, filename: name }));
  }
  return files;
}

function isArtifact(fact: Fact | UnknownFact): fact is Attached {
  return fact.type === "content.attached" && (fact as Attached).kind === "artifact";
}

/** A row of the parent's branch; in one session the bytes are stored once all the same. */
async function adopt({ context, held }: ActiveTurn, from: ChildAddress["ref"], id: string): Promise<void> {
  if (await context.store.content?.get(held.ref, id)) return;
  const stored = await getContent(context, from, id);
  const { mediaType, name, origin, size } = stored.content;
  const about = { mediaType, ...(name !== undefined && { name }), ...(origin !== undefined && { origin }) };
  await putContent(context, held.ref, { stream: stored, maxBytes: size, ...about });
}
