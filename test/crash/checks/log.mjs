// The log of a branch: every acknowledged batch once, whole, at its numbers, in the order of time; nothing else. What the
// batches say about the header and the run slot must be what the branch's record says.

import { isDeepStrictEqual } from "node:util";
import { isAcked } from "../kit/lives.mjs";
import { hashOf } from "../kit/trace.mjs";

export function checkBranchLog({ life, shown, parent }, runs, report) {
  const { record, events } = shown;
  const say = (kind, text) => report(kind, `${life.name}: ${text}`);
  const wrong = events.findIndex(({ seq }, i) => seq !== i + 1);
  if (wrong !== -1) say("wrong", `fact ${wrong + 1} has the number ${events[wrong].seq}`);
  if (events.length !== record.seq) say("wrong", `the record says ${record.seq}, the log has ${events.length} facts`);
  checkShared({ record, events, parent }, say);
  const own = events.slice(record.parent?.seq ?? 0);
  const batches = readBatches(life, own, say);
  checkPresent(life, new Set(batches), say);
  checkOrder(batches, say);
  checkHeader(life, record, batches, say);
  checkSlot(life, runs, batches, say);
  for (const [id, seq] of life.shown) {
    if (events[seq - 1]?.id !== id) say("lost", `fact ${id} was shown at ${seq}, where ${events[seq - 1]?.id} is`);
  }
  if (record.activeAt < life.activeAt)
    say("lost", `it was active at ${life.activeAt}, the record says ${record.activeAt}`);
}

/** child[1…f] is parent[1…f]. */
function checkShared({ record, events, parent }, say) {
  if (!parent) return;
  for (let i = 0; i < record.parent.seq; i++) {
    const theirs = parent.shown.events[i];
    if (events[i]?.id === theirs?.id && events[i]?.data === theirs?.data) continue;
    return say("wrong", `fact ${i + 1} differs from its parent's`);
  }
}

/** Walks the log batch by batch; returns the batches of the history in the order of the log. */
function readBatches(life, own, say) {
  const batches = [];
  let at = readFirst(life, own, say);
  while (at < own.length) {
    const batch = life.batches.get(own[at].id);
    if (!batch) {
      const half = [...life.batches.values()].some(({ events }) => events.some(({ id }) => id === own[at].id));
      say(half ? "half" : "unintended", `fact ${own[at].seq} (${own[at].id}) is there without the facts before it`);
      at += 1;
      continue;
    }
    if (batches.includes(batch)) say("wrong", `fact ${own[at].seq} (${own[at].id}) is there a second time`);
    batches.push(batch);
    at += readBatch(batch, own, at, say);
  }
  return batches;
}

/** The facts it began with, and all there were before the history. */
function readFirst({ facts }, own, say) {
  const wrong = facts.findIndex(({ id, hash }, i) => own[i]?.id !== id || hashOf(own[i].data) !== hash);
  if (wrong === -1) return facts.length;
  say("lost", `fact ${facts[wrong].id}, its own fact ${wrong + 1}, is not there as it was`);
  return facts.length;
}

function readBatch(batch, own, at, say) {
  const told = batch.writes.find(isAcked)?.ok;
  if (told && told.first !== own[at].seq) say("wrong", `fact ${own[at].id} was told ${told.first}, is ${own[at].seq}`);
  if (batch.writes.some((write) => isAcked(write) && write.ok.first !== told.first)) {
    say("wrong", `fact ${own[at].id} was told two different numbers`);
  }
  for (const [i, { id, hash }] of batch.events.entries()) {
    const fact = own[at + i];
    if (fact?.id !== id) {
      say("half", `of a batch of ${batch.events.length} only the first ${i} are there, up to ${own[at + i - 1].seq}`);
      return i;
    }
    if (hashOf(fact.data) !== hash) say("wrong", `fact ${fact.seq} (${id}) has other data than was written`);
  }
  return batch.events.length;
}

function checkPresent(life, there, say) {
  for (const batch of life.batches.values()) {
    if (there.has(batch) || !batch.writes.some(isAcked)) continue;
    const { first, last } = batch.writes.find(isAcked).ok;
    say("lost", `the batch ${first} to ${last} (${batch.events[0].id}) was acknowledged and is not there`);
  }
}

/** None stands before one that was answered before it was asked for. */
function checkOrder(batches, say) {
  let begun = -1;
  for (const { writes, events } of batches) {
    const line = Math.min(...writes.map((write) => write.line));
    const end = Math.min(
      ...writes.filter(isAcked).map((write) => write.end),
      Math.max(...writes.map(({ end }) => end)),
    );
    if (end < begun) say("wrong", `fact ${events[0].id} stands after one that was begun later`);
    begun = Math.max(begun, line);
  }
}

function checkHeader(life, record, batches, say) {
  const header = batches.reduce((sum, { writes }) => merge(sum, writes[0].header ?? {}), life.header);
  if (isDeepStrictEqual(record.header, header)) return;
  say("lost", `the header is ${JSON.stringify(record.header)}, the facts make it ${JSON.stringify(header)}`);
}

/** The run slot is held by the last claim in the log, unless that was given back. */
function checkSlot(life, runs, batches, say) {
  const found = runs.find(({ sessionId, branchId }) => sessionId === life.session.id && branchId === life.id);
  const held = lastClaim(life, batches, say);
  const releases = held ? life.releases.filter((release) => mayRelease(release, held, found)) : [];
  const isFree = !held || (epochOf(held, found) !== undefined && releases.some(isAcked));
  if (found && isFree) say("wrong", `run ${found.runId} holds it, although nobody does`);
  if (!found && !isFree && releases.length === 0) say("lost", `the claim of run ${held.runId} is gone`);
  if (!found || isFree) return;
  if (found.runId !== held.runId) say("wrong", `run ${found.runId} holds it instead of ${held.runId}`);
  if (held.epoch !== undefined && found.epoch !== held.epoch) {
    say("wrong", `run ${found.runId} holds it with epoch ${found.epoch}, not ${held.epoch}`);
  }
  if (found.epoch < held.least) {
    say("wrong", `run ${found.runId} holds it with epoch ${found.epoch}, although ${held.least - 1} was used up`);
  }
}

/** The claim that no later fact took over or gave back. Only an answer tells its epoch, but that is `least` or more. */
function lastClaim(life, batches, say) {
  let held = life.run && { runId: life.run.runId, epoch: life.run.epoch, least: life.run.epoch, line: -1 };
  let newest = held?.epoch ?? 0;
  for (const { writes } of batches) {
    const write = writes.find(isAcked) ?? writes[0];
    if (write.claim) {
      const epoch = write.ok?.epoch;
      if (epoch <= newest) say("wrong", `the claim of run ${write.claim.runId} has epoch ${epoch} after ${newest}`);
      held = { runId: write.claim.runId, epoch, least: newest + 1, line: write.line };
      newest = epoch ?? newest + 1;
    }
    if (write.release) held = undefined;
  }
  return held;
}

/**
 * A claim that landed and was not answered may have been read, and given back, by another process: its release names an
 * epoch that no answer told. One of an epoch that an earlier claim had, or that was over before, is not its release.
 */
function mayRelease(release, held, found) {
  const epoch = epochOf(held, found);
  if (epoch !== undefined) return release.epoch === epoch;
  return release.epoch >= held.least && release.end > held.line && release.ok?.released !== false;
}

/** The epoch of the claim, as far as an answer or the store tells it. */
function epochOf(held, found) {
  return held.epoch ?? (found?.runId === held.runId ? found.epoch : undefined);
}

export function merge(target, patch) {
  const result = { ...target };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = value;
  }
  return result;
}
