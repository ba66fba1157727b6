// Copies one session, from the start or from where an earlier copy stopped.
//
//   CopySession-1. Only adds. What is there must be an earlier state of the same session: facts, checkpoints and content that the
//       source has too, equal byte for byte. Anything else is refused before anything is written to that branch.
//   CopySession-2. A branch is complete before the next one begins, so a fork finds the position it was forked at.
//   CopySession-3. Nothing is awaited between setting the clock and the call it is set for, and calls don't overlap, except empty
//       updates of one session, which have one time.
//   CopySession-4. The session's own row is updated last: until then its version shows that the copy is not finished.

import { isDeepStrictEqual } from "node:util";
import { BoughError } from "../../base/errors.ts";
import { diffPatch } from "../../base/json.ts";
import { needContent } from "../../log/need-content.ts";
import type { BranchRecord, NewEvent, SessionRecord, Store, StoredEvent } from "../../log/store.ts";
import type { ReplayClock } from "./replay-clock.ts";
import { baseOf, branchesOf, needSession, ownContent, ownFacts, placeholderId, type Source } from "./source.ts";

/** The store a session is copied to. */
export interface Target {
  readonly store: Store;
  /** The clock that the store was opened with. */
  readonly clock: ReplayClock;
}

/** How much text one append holds, and how many updates run at once. */
const appendBytes = 4 * 1024 * 1024;
const updatesAtOnce = 64;

/** Throws `version_conflict` if the target has a different session with this id. `pause` is called between steps and may throw. */
export async function copySession(source: Source, target: Target, sessionId: string, pause: () => void): Promise<void> {
  const record = await needSession(source, sessionId);
  const branches = await branchesOf(source, sessionId);
  // Before anything is written: a session is copied either with its content or not at all.
  for (const branch of branches) if ((await ownContent(source, branch)).length > 0) needContent(target.store);
  await beginSession(target, record, branches);
  for (const branch of branches) {
    pause();
    await copyBranch(source, target, branch, pause);
  }
  await finishSession(target, record);
}

async function beginSession(target: Target, record: SessionRecord, branches: readonly BranchRecord[]): Promise<void> {
  const { store, clock } = target;
  const there = await store.getSession(record.id);
  if (there) return refuseOther(record, there, branches, await store.listBranches(record.id));
  const { id, metadata, state, createdAt } = record;
  const [first] = branches;
  const isOriginal = first !== undefined && first.parent === undefined && first.createdAt === createdAt;
  const branch = isOriginal ? { id: first.branchId, header: first.header } : { id: placeholderId, header: {} };
  clock.at = createdAt;
  await store.createSession({ id, metadata, state, branch: { ...branch, events: [] } });
}

/** CopySession-1 for the session's row and its list of branches. */
function refuseOther(
  record: SessionRecord,
  there: SessionRecord,
  branches: readonly BranchRecord[],
  thereBranches: readonly BranchRecord[],
): void {
  const isNewer = there.version > record.version;
  const isSame = isDeepStrictEqual([there.metadata, there.state], [record.metadata, record.state]);
  if (there.createdAt !== record.createdAt) throw differs(record.id, "it was created at another time");
  if (isNewer) throw differs(record.id, "its metadata or state was updated in the target");
  if (there.version === record.version && !isSame) throw differs(record.id, "its metadata or state differs");
  const known = branches.map(({ branchId }) => branchId);
  const found = thereBranches.map(({ branchId }) => branchId).filter((id) => id !== placeholderId);
  const extra = found.find((id) => !known.includes(id));
  if (extra !== undefined) throw differs(record.id, `the target has a branch "${extra}" that the source does not have`);
}

async function copyBranch(source: Source, target: Target, branch: BranchRecord, pause: () => void): Promise<void> {
  const there = (await target.store.getBranch(branch)) ?? (await beginBranch(target, branch));
  refuseOtherBranch(branch, there);
  let position = baseOf(branch);
  for await (const page of ownFacts(source, branch)) {
    pause();
    const isKnown = position < there.seq;
    const known = isKnown ? await target.store.read(branch, { after: position, limit: page.length }) : [];
    for (const [i, fact] of known.entries()) {
      const { id, data } = page[i]!;
      if (fact.id !== id || fact.data !== data) {
        throw differs(branch.sessionId, `fact ${fact.seq} of branch "${branch.branchId}" differs`);
      }
    }
    await appendFacts(target, branch, there, page.slice(known.length));
    position = page.at(-1)!.seq;
  }
  await copyCheckpoints(source, target, branch);
  await copyContent(source, target, branch, pause);
  await copySegments(source, target, branch);
}

async function beginBranch({ store, clock }: Target, branch: BranchRecord): Promise<BranchRecord> {
  const { sessionId, branchId: id, header, parent, createdAt } = branch;
  clock.at = createdAt;
  return store.createBranch(sessionId, { id, header, events: [], ...(parent && { parent }) });
}

function refuseOtherBranch(branch: BranchRecord, there: BranchRecord): void {
  const name = `branch "${branch.branchId}"`;
  const isSameFork = isDeepStrictEqual(there.parent, branch.parent);
  if (there.createdAt !== branch.createdAt) throw differs(branch.sessionId, `${name} was created at another time`);
  if (!isSameFork) throw differs(branch.sessionId, `${name} was forked at another position`);
  if (there.seq > branch.seq) {
    throw differs(branch.sessionId, `${name} ends at ${there.seq} in the target and at ${branch.seq} in the source`);
  }
  if (there.seq === branch.seq && !isDeepStrictEqual(there.header, branch.header)) {
    throw differs(branch.sessionId, `the header of ${name} differs`);
  }
}

/** The last append updates the header, in case an earlier copy wrote an older one. */
async function appendFacts(
  { store, clock }: Target,
  branch: BranchRecord,
  there: BranchRecord,
  facts: readonly StoredEvent[],
): Promise<void> {
  const header = diffPatch(there.header, branch.header);
  for (const chunk of inChunks(facts)) {
    const expectedSeq = chunk[0]!.seq - 1;
    const isLast = chunk.at(-1)!.seq === branch.seq && Object.keys(header).length > 0;
    const events: NewEvent[] = chunk.map(({ id, data }) => ({ id, data }));
    clock.at = branch.activeAt;
    await store.append(branch, events, { expectedSeq, ...(isLast && { header }) });
  }
}

function* inChunks(facts: readonly StoredEvent[]): Generator<readonly StoredEvent[]> {
  let start = 0;
  let size = 0;
  for (const [i, { data }] of facts.entries()) {
    if (i > start && size + data.length > appendBytes) {
      yield facts.slice(start, i);
      start = i;
      size = 0;
    }
    size += data.length;
  }
  if (start < facts.length) yield facts.slice(start);
}

async function copyCheckpoints(source: Source, { store, clock }: Target, branch: BranchRecord): Promise<void> {
  const wanted = [...(await source.listCheckpoints(branch))].reverse();
  const there = new Map((await store.listCheckpoints(branch)).map((checkpoint) => [checkpoint.id, checkpoint]));
  for (const { id, seq, data, createdAt } of wanted) {
    const known = there.get(id);
    there.delete(id);
    if (known && !isDeepStrictEqual(known, { id, seq, data, createdAt })) {
      throw differs(branch.sessionId, `checkpoint "${id}" of branch "${branch.branchId}" differs`);
    }
    clock.at = createdAt;
    if (!known) await store.saveCheckpoint(branch, { id, seq, data });
  }
  for (const id of there.keys()) {
    throw differs(
      branch.sessionId,
      `branch "${branch.branchId}" has a checkpoint "${id}" in the target that the source does not have`,
    );
  }
}

async function copyContent(source: Source, { store, clock }: Target, branch: BranchRecord, pause: () => void) {
  const there = new Set((await ownContent(store, branch)).map(({ id }) => id));
  for (const { id, mediaType, name, createdAt, seq, info } of await ownContent(source, branch)) {
    if (there.delete(id)) continue;
    pause();
    const writer = await needContent(store).write(branch);
    try {
      for await (const piece of source.content?.read(branch, id) ?? []) await writer.add(piece);
      await writer.finish();
      clock.at = createdAt;
      await writer.commit({ mediaType, name, info, seq });
    } catch (error) {
      await writer.abort();
      throw error;
    }
  }
  for (const id of there) {
    throw differs(
      branch.sessionId,
      `branch "${branch.branchId}" has content "${id}" in the target that the source does not have`,
    );
  }
}

/** Derived data, so not compared: it only saves the first load of the copy from reading everything. */
async function copySegments(source: Source, { store }: Target, branch: BranchRecord): Promise<void> {
  const { segments } = store;
  if (!segments) return;
  for (let at = branch.seq; at > baseOf(branch); ) {
    const segment = await source.segments?.get(branch, at);
    if (!segment || segment.to <= baseOf(branch)) return;
    if ((await segments.get(branch, segment.to))?.to !== segment.to) await segments.save(branch, segment);
    at = segment.to - 1;
  }
}

async function finishSession({ store, clock }: Target, record: SessionRecord): Promise<void> {
  const placeholder = { sessionId: record.id, branchId: placeholderId };
  const removePlaceholder = () => {
    clock.at = record.activeAt;
    return store.deleteBranch(placeholder);
  };
  if (await store.getBranch(placeholder)) await removePlaceholder();
  const there = await needSession(store, record.id);
  await bringToVersion(store, clock, there, record);
  if ((await needSession(store, record.id)).activeAt === record.activeAt) return;
  // The last activity left nothing behind, such as a deleted branch; this reproduces it.
  clock.at = record.activeAt;
  await store.createBranch(record.id, { id: placeholderId, header: {}, events: [] });
  await removePlaceholder();
}

/** A version grows only by updates, and must never stand for two different states to a process that remembers it. */
async function bringToVersion(store: Store, clock: ReplayClock, there: SessionRecord, record: SessionRecord) {
  let missing = record.version - there.version;
  if (missing <= 0) return;
  clock.at = record.activeAt;
  const metadata = diffPatch(there.metadata, record.metadata);
  const state = diffPatch(there.state, record.state);
  await store.updateSession(record.id, { metadata, state }, { expectedVersion: there.version });
  for (missing -= 1; missing > 0; missing -= updatesAtOnce) {
    const updates = Array.from({ length: Math.min(missing, updatesAtOnce) }, () => store.updateSession(record.id, {}));
    await Promise.all(updates);
  }
}

function differs(sessionId: string, why: string): BoughError {
  const message = `Session "${sessionId}" already exists in the target and differs: ${why}. Delete it there, or leave it out with --sessions.`;
  return new BoughError("version_conflict", message, { data: { sessionId } });
}
