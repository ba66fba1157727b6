// uncommitted/{branch}.json: the turn that is not closed, and the claim of the run slot.
//
//   Uncommitted-1. The file is there while the branch's header names an open turn (a parked one, too) or its run slot is held. It
//       comes, changes and goes in the record of the redo log that makes it so.
//   Uncommitted-2. The claim is kept here and nowhere else. The rest is shown for people: the header and the log have it.
//   Uncommitted-3. Where a turn or a question is found is known from ids: each is named by the id of the fact that opened it. An
//       ancestor's facts are not looked up.
//   Uncommitted-4. Its size is bounded: it names the newest runs of a turn, not all of them.

import type { Clock } from "../../base/clock.ts";
import type { RunClaim, StoreProblem } from "../../log/index.ts";
import type { Change } from "./change.ts";
import type { Disk } from "./disk.ts";
import { inBranch, inSession } from "./layout.ts";
import { nameOf } from "./names.ts";
import { seal, unseal } from "./seal.ts";
import type { BranchState, SessionState, ShownTurn } from "./state.ts";

/** What the file tells. */
export interface Uncommitted {
  readonly claim?: RunClaim | undefined;
  readonly turn?: ShownTurn | undefined;
}

interface UncommittedDocument {
  readonly sessionId: string;
  readonly branchId: string;
  readonly turn?: Omit<ShownTurn, "questions" | "runs">;
  readonly questions?: ShownTurn["questions"];
  readonly runs?: ShownTurn["runs"];
  /** Where the facts of the turn are, relative to this file. */
  readonly log: string;
  readonly claim?: Omit<RunClaim, "sessionId" | "branchId">;
  /** Which process wrote it (see takeClaim). */
  readonly process: string;
}

const runsShown = 20;
const thisProcess = crypto.randomUUID();

export function uncommittedOf({ session, record }: BranchState): Uncommitted {
  return { claim: session.claims.get(record.branchId), turn: session.turns.get(record.branchId) };
}

/** Makes the file follow the branch's claim and header, which changed; `before` is what it told. */
export function settle(branch: BranchState, before: Uncommitted, change: Change): void {
  const { session, name } = branch;
  const { branchId } = branch.record;
  const claim = session.claims.get(branchId);
  const turn = showTurn(branch, before.turn, claim);
  if (turn !== before.turn) setTurn(session, branchId, turn, change);
  const isThere = session.uncommitted.has(branchId);
  if (!claim && !turn) {
    if (isThere) removeUncommitted(session, branchId, change);
    return;
  }
  if (isThere && claim?.epoch === before.claim?.epoch && turn === before.turn) return;
  const path = inSession.uncommittedOf(session.path, name);
  if (isThere) change.write(path, encode(branch));
  else change.writePassing(path, encode(branch));
  session.uncommitted.add(branchId);
  if (!isThere) change.undo.push(() => session.uncommitted.delete(branchId));
}

/** Removes the file of a branch, if there is one; the claim is the caller's to drop. */
export function removeUncommitted(session: SessionState, branchId: string, change: Change): void {
  setTurn(session, branchId, undefined, change);
  if (!session.uncommitted.delete(branchId)) return;
  change.undo.push(() => session.uncommitted.add(branchId));
  const path = inSession.uncommittedOf(session.path, nameOf(branchId));
  change.operations.push({ kind: "remove", path, passing: true });
}

/** Writes a longer lease, outside the redo log. */
export function writeLease(disk: Disk, branch: BranchState): void {
  disk.write(inSession.uncommittedOf(branch.session.path, branch.name), encode(branch));
}

/** Reads the files of a session that is loaded. */
export function loadUncommitted(disk: Disk, session: SessionState, clock: Clock, problems: StoreProblem[]): void {
  for (const name of disk.list(inSession.uncommitted(session.path))) {
    if (!name.endsWith(".json")) continue;
    const path = `${inSession.uncommitted(session.path)}/${name}`;
    const bytes = disk.readWhole(path);
    const document = bytes && (unseal(bytes) as UncommittedDocument | undefined);
    if (document && session.branchNames.has(nameOf(document.branchId))) {
      take(session, document, clock.now());
    } else {
      disk.remove(path);
      const detail = `${disk.absolute(path)} was damaged, or its branch was deleted; removed.`;
      problems.push({ code: "repaired", detail, sessionId: session.record.id });
    }
  }
}

function take(session: SessionState, document: UncommittedDocument, now: number): void {
  const { branchId, turn, questions = [], runs = [] } = document;
  session.uncommitted.add(branchId);
  if (turn) session.turns.set(branchId, { ...turn, questions, runs });
  if (document.claim) session.claims.set(branchId, takeClaim(session.record.id, document, document.claim, now));
}

/**
 * The lock proves that another process which made a claim is gone, so its lease is over, whatever it says. Claims of this
 * process, from before it opened the directory again, hold.
 */
function takeClaim(
  sessionId: string,
  { branchId, process }: UncommittedDocument,
  claim: NonNullable<UncommittedDocument["claim"]>,
  now: number,
): RunClaim {
  const expiresAt = process === thisProcess ? claim.expiresAt : Math.min(claim.expiresAt, claim.claimedAt, now);
  return { sessionId, branchId, ...claim, expiresAt };
}

function encode({ session, record, path }: BranchState): Buffer {
  const { sessionId, branchId } = record;
  const { questions, runs, ...turn } = session.turns.get(branchId) ?? {};
  const { sessionId: _s, branchId: _b, ...claim } = session.claims.get(branchId) ?? {};
  return seal({
    sessionId,
    branchId,
    ...(questions && { turn: turn as NonNullable<UncommittedDocument["turn"]>, questions, runs: runs! }),
    log: inBranch.log(path).replace(session.path, ".."),
    ...("epoch" in claim && { claim: claim as NonNullable<UncommittedDocument["claim"]> }),
    process: thisProcess,
  } satisfies UncommittedDocument);
}

function setTurn(session: SessionState, branchId: string, turn: ShownTurn | undefined, change: Change): void {
  const before = session.turns.get(branchId);
  const set = (shown: ShownTurn | undefined) =>
    shown ? session.turns.set(branchId, shown) : session.turns.delete(branchId);
  set(turn);
  change.undo.push(() => set(before));
}

/** The turn that the header names; `known` itself when nothing of it changed. */
function showTurn(branch: BranchState, known: ShownTurn | undefined, claim: RunClaim | undefined) {
  const { turn: id, asks } = branch.record.header;
  if (typeof id !== "string") return undefined;
  const turn = known?.id === id ? known : beginTurn(branch, id);
  const asked = Array.isArray(asks) ? asks.filter((ask) => typeof ask === "string") : [];
  const isAsked = asked.length === turn.questions.length && asked.every((ask, i) => ask === turn.questions[i]!.id);
  const isNewRun = claim !== undefined && claim.epoch !== turn.runs.at(-1)?.epoch;
  if (isAsked && !isNewRun) return turn;
  const questions = isAsked ? turn.questions : asked.map((ask) => ({ id: ask, ...placeOf(branch, ask) }));
  return { ...turn, questions, runs: isNewRun ? [...turn.runs, runOf(claim)].slice(-runsShown) : turn.runs };
}

function runOf({ runId, owner, epoch, claimedAt }: RunClaim): ShownTurn["runs"][number] {
  return { runId, owner, epoch, claimedAt };
}

/** A turn that the append which is being decided opens, or one whose file was lost. */
function beginTurn(branch: BranchState, id: string): ShownTurn {
  const place = placeOf(branch, id);
  const isNew = branch.fresh.some(({ seq }) => seq === place.seq);
  return {
    id,
    ...(isNew && { startedAt: branch.record.activeAt }),
    ...place,
    ...(isNew && { byte: branch.log.end.batchAt }),
    questions: [],
    runs: [],
  };
}

function placeOf({ ids }: BranchState, id: string): { readonly seq?: number } {
  const seq = ids?.get(id);
  return seq === undefined ? {} : { seq };
}
