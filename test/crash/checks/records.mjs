// What stands beside the logs: session records, checkpoints, content.

import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { isAcked } from "../kit/lives.mjs";
import { merge } from "./log.mjs";

/** Every update counts the version up by one, so the acknowledged ones know their place; the unknown ones fill the gaps. */
export function checkSession({ life, shown: { record } }, report) {
  const say = (kind, text) => report(kind, `session ${life.id}: ${text}`);
  if (record.activeAt < life.activeAt)
    say("lost", `it was active at ${life.activeAt}, the record says ${record.activeAt}`);
  const slots = Array.from({ length: record.version - life.start.version });
  for (const update of life.updates.filter(isAcked)) {
    const slot = update.ok.version - life.start.version - 1;
    if (slot >= slots.length) return say("lost", `the update to version ${update.ok.version} is not there`);
    if (slots[slot]) return say("wrong", `two updates were told version ${update.ok.version}`);
    slots[slot] = update;
  }
  const unknown = life.updates.filter((update) => !isAcked(update));
  if (explains(slots, 0, unknown, life.start, record)) return;
  const { metadata, state, version } = record;
  say("lost", `no order of its updates makes it ${JSON.stringify({ version, metadata, state })}`);
}

function explains(slots, i, unknown, before, record) {
  if (i === slots.length) {
    return isDeepStrictEqual(before.metadata, record.metadata) && isDeepStrictEqual(before.state, record.state);
  }
  const candidates = slots[i] ? [slots[i]] : unknown;
  return candidates.some((update) => {
    const { metadata, state } = update;
    const after = { metadata: merge(before.metadata, metadata), state: merge(before.state, state) };
    const left = unknown.filter((each) => each !== update);
    return explains(slots, i + 1, left, after, record);
  });
}

export function checkCheckpoints({ life, shown }, report) {
  const say = (kind, text) => report(kind, `${life.name}: checkpoint ${text}`);
  const there = new Map(shown.checkpoints.map((checkpoint) => [checkpoint.id, checkpoint]));
  for (const [id, { seq, data }] of there) {
    const saved = life.checkpoints.get(id);
    if (!saved) say("unintended", `${id} is there, and nobody saved it`);
    else if (saved.seq !== seq || !isDeepStrictEqual(saved.data, data)) say("wrong", `${id} is not as it was saved`);
  }
  for (const [id, saved] of life.checkpoints) {
    const deletes = life.checkpointDeletes.filter(({ ids }) => ids.includes(id));
    if (there.has(id) && deletes.some(isAcked)) say("wrong", `${id} is there after its removal was acknowledged`);
    if (!there.has(id) && isAcked(saved) && deletes.length === 0) say("lost", `${id} was saved and is not there`);
  }
  for (const removal of life.checkpointDeletes) checkWholly(life, removal, there, say);
}

/** A removal of unknown outcome took all of its checkpoints or none. */
function checkWholly(life, removal, there, say) {
  if (isAcked(removal)) return;
  const isOnlyHere = (id) => life.checkpointDeletes.every((each) => each === removal || !each.ids.includes(id));
  const sure = removal.ids.filter(
    (id) => life.checkpoints.has(id) && isAcked(life.checkpoints.get(id)) && isOnlyHere(id),
  );
  const left = sure.filter((id) => there.has(id));
  if (left.length > 0 && left.length < sure.length) {
    say("half", `removal of ${sure.length} at once left ${left.length} of them`);
  }
}

/** A branch sees its own content, and its ancestors' from before the fork. */
export function checkContent(branch, report) {
  const say = (kind, text) => report(kind, `${branch.life.name}: content ${text}`);
  const there = new Map(branch.shown.contents.map((content) => [content.record.id, content]));
  const must = new Set();
  const may = new Set();
  for (let each = branch; each; each = each.parent) {
    for (const [id, fate] of fates(each.life)) {
      // Whether an ancestor's was put before the fork is not told.
      if (fate === "must" && each === branch) must.add(id);
      if (fate !== "gone") may.add(id);
    }
  }
  for (const id of must) if (!there.has(id)) say("lost", `${id} was acknowledged and is not there`);
  for (const [id, { record, bytes }] of there) {
    if (!may.has(id)) say("unintended", `${id} is there, and nobody put it there or it was removed`);
    const real = Buffer.from(bytes, "hex");
    const isRight = createHash("sha256").update(real).digest("hex") === id && real.length === record.size;
    if (!isRight) say("wrong", `${id} has other bytes than were put there`);
  }
}

/** Of each content the branch itself refers to: "must" be there, "may" be, or "gone". */
function fates({ contentWrites }) {
  const byId = new Map();
  for (const write of contentWrites) byId.set(write.id, [...(byId.get(write.id) ?? []), write]);
  return [...byId].map(([id, writes]) => [id, fateOf(writes)]);
}

function fateOf(writes) {
  const puts = writes.filter((write) => write.do === "putContent");
  const deletes = writes.filter((write) => write.do === "deleteContent");
  const isLast = (write, others) => isAcked(write) && others.every((other) => other.end < write.line);
  if (puts.some((put) => isLast(put, deletes))) return "must";
  return puts.length === 0 || deletes.some((removal) => isLast(removal, puts)) ? "gone" : "may";
}
