import { BoughError } from "../../base/errors.ts";
import { mergePatch } from "../../base/json.ts";
import {
  type Appended,
  type AppendOptions,
  type BranchRef,
  checkDistinct,
  decideAppend,
  type NewEvent,
  repeatedClaim,
  type StoredEvent,
} from "../../log/index.ts";
import type { Change } from "./change.ts";
import { idsOf, readOwn } from "./own-log.ts";
import { claimSlot, dropClaim } from "./runs.ts";
import type { Sessions } from "./sessions.ts";
import type { BranchState } from "./state.ts";
import { settle, uncommittedOf } from "./uncommitted.ts";

export function append(
  sessions: Sessions,
  ref: BranchRef,
  events: readonly NewEvent[],
  options: AppendOptions,
  ticket: () => number,
  change: Change,
): Appended {
  const branch = sessions.getBranch(ref);
  if (branch.damage) throw branch.damage.error;
  const { session, log, fresh } = branch;
  const ids = idsOf(branch);
  const find = (id: string): StoredEvent | undefined => {
    const seq = ids.get(id);
    if (seq === undefined) return undefined;
    return fresh.find((each) => each.seq === seq) ?? readOwn(branch, () => log.readOne(seq));
  };
  const epoch = session.claims.get(ref.branchId)?.epoch;
  const { seq, header } = branch.record;
  const { first, last, repeated } = decideAppend({ ref, seq, epoch, header, find }, events, options);
  if (repeated) return { first, last, ...repeatedClaim(session.claims.get(ref.branchId), options.claim) };
  events.forEach(checkEventId);
  const uncommitted = uncommittedOf(branch);
  const claim = options.claim && claimSlot(sessions, branch, options.claim, ticket, change);
  if (options.release) dropClaim(sessions, session, ref.branchId, change);
  const now = sessions.clock.now();
  const before = { record: branch.record, end: log.end };
  const bytes = log.extend(events, now, options.header);
  const patched = options.header ? mergePatch(header, options.header) : header;
  branch.record = { ...branch.record, seq: last, activeAt: now, header: patched };
  if (options.header) sessions.noteOpen(branch.record);
  remember(branch, events, first, change);
  change.operations.push({ kind: "append", path: log.path, at: before.end.offset, bytes });
  change.undo.push(() => {
    branch.record = before.record;
    log.reset(before.end);
  });
  if (options.claim || options.release || options.header) settle(branch, uncommitted, change);
  change.done.push(() => sessions.watchers.tell(ref));
  sessions.touch(session, now, change);
  sessions.branchFiles.note(branch);
  return { first, last, ...(claim && { claim }) };
}

/** Makes facts known by their ids; until they are in the file, whole. */
export function remember(
  { ids, fresh }: BranchState,
  events: readonly NewEvent[],
  first: number,
  change: Change,
): void {
  let seq = first;
  for (const { id, data } of events) {
    ids?.set(id, seq);
    fresh.push({ seq, id, data });
    seq += 1;
  }
  change.done.push(() => {
    fresh.length = 0;
  });
}

/** A branch's first facts have ids of their own. */
export function checkFirstFacts(ref: BranchRef, events: readonly NewEvent[]): void {
  checkDistinct(ref, events);
  events.forEach(checkEventId);
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const notAnEventId = /[\u0000-\u001f\u007f]|\p{Surrogate}/u;

function checkEventId({ id }: NewEvent): void {
  if (notAnEventId.test(id)) {
    throw new BoughError("invalid_argument", "An event id can't contain control characters.", { data: { id } });
  }
}
