// Long histories, made fast: many turns in one append, otherwise what the turns would have left behind. The branch is
// loaded after each batch, so that the pieces of its projection are stored as often as they would be.

import { strict as assert } from "node:assert";
import { codec } from "bough/events";
import { pooledTurns } from "./conversation.mjs";

/** A piece is cut after 512 messages. */
const turnsPerBatch = 256;
let made = 0;

/** Adds turns of two messages until the branch has so many messages. */
export async function growTo(sessions, ref, messages, { next = pooledTurns(), progress } = {}) {
  const { sessionId, branchId } = ref;
  let have = (await sessions.loadBranch({ sessionId, branchId })).messageCount;
  while (have < messages) {
    const turns = Math.min(turnsPerBatch, Math.ceil((messages - have) / 2));
    const events = Array.from({ length: turns }, () => factsOf(next())).flat();
    have += 2 * turns;
    await sessions.store.append(ref, events, { header: { messages: have } });
    await sessions.loadBranch({ sessionId, branchId });
    progress?.(`${have.toLocaleString("en")} messages`);
  }
  assert.equal((await sessions.loadBranch({ sessionId, branchId })).messages.length, have);
  return have;
}

/** Compacts the branch softly so that a model sees the last messages and a short summary. Those are turns of two. */
export async function compactTo(sessions, ref, visible) {
  const { messages, seq } = await sessions.loadBranch(ref);
  const to = messages.length - visible;
  const fact = {
    ...{ type: "history.compacted", id: id(), at: Date.now(), retention: "soft", from: 0, to },
    ...{ first: messages[0].id, last: messages[to - 1].id },
    replacements: [{ id: id(), role: "user", content: "Earlier conversation, summarised." }],
  };
  await sessions.store.append(ref, [codec.encode(fact)], { expectedSeq: seq });
  await sessions.loadBranch(ref);
}

function factsOf({ user, assistant }) {
  const at = Date.now();
  const turnId = id();
  const message = (role, text) => ({
    type: "message.added",
    id: id(),
    at,
    turnId,
    role,
    content: [{ type: "text", text }],
  });
  return [
    { type: "turn.started", id: turnId, at, runId: id() },
    message("user", user),
    message("assistant", assistant),
    { type: "turn.committed", id: id(), at, turnId },
  ].map((draft) => codec.encode(draft));
}

/** As long as Bough's own ids, and as they do, growing with time. */
function id() {
  return `h${(++made).toString(36).padStart(15, "0")}`;
}
