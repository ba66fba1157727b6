// What an import accepts from an untrusted file. Such a file can claim that a person approved a call, or that a
// tool is always allowed, but that was no user of this store. So before such a session is written:
//   Distrust-1. No turn is left open: each gets a `turn.ended` (interrupted, reason "imported"), on every branch that sees it open.
//       Nothing can resume it, so neither its calls nor the answers it was given have any effect.
//       No input is left in a queue: each gets an `input.withdrawn` (reason "imported"), because the next run would take it.
//       No background task goes on: each gets a `task.ended` (cancelled, reason "imported"), because its agent's turn is closed.
//   Distrust-2. Remembered permissions are gone from the session's state and from the state of its branches.
//   Distrust-3. The same file always results in the same session, so an import can be repeated and compared.
//   Distrust-4. A branch's row and its facts name the same owner: the row alone can't hide a branch or give it to another.

import { isDeepStrictEqual } from "node:util";
import { BoughError } from "../../base/errors.ts";
import { type JsonObject, mergePatch } from "../../base/json.ts";
import { codec, type Draft, type Fact, type UnknownFact } from "../../events/index.ts";
import type { BranchRecord } from "../../log/store.ts";
import { type RowHeader, turnPatch } from "../../projection/header.ts";
import { type BranchView, copyView, emptyView, fold } from "../../projection/index.ts";
import { choicesIn, inForce, permissionsSlot } from "../../projection/permissions.ts";
import type { StagedSession } from "./import.ts";
import { baseOf } from "./source.ts";

/** What was changed in one or several sessions. */
export interface Distrusted {
  closedTurns: number;
  /** Answers in those turns that no call had used yet. */
  voidedAnswers: number;
  /** Inputs that were queued. */
  withdrawnInputs: number;
  /** Background tasks that had not ended. */
  endedTasks: number;
  /** Tools for which a choice was remembered. */
  droppedPermissions: number;
}

export function nothingDistrusted(): Distrusted {
  return { closedTurns: 0, voidedAnswers: 0, withdrawnInputs: 0, endedTasks: 0, droppedPermissions: 0 };
}

const reason = "imported";

/** Changes the staged session. Throws `store_corrupt` if one of its branches can't be read. */
export async function distrust(session: StagedSession, sum: Distrusted): Promise<void> {
  const { state } = session.record;
  if (Object.hasOwn(state, permissionsSlot)) {
    sum.droppedPermissions += countPermissions(state);
    session.replaceState(mergePatch(state, { [permissionsSlot]: null }));
  }
  const branches = await session.listBranches();
  const readings = new Readings(branches);
  for (const branch of branches) {
    const { view, unused } = readings.read(branch, session.factsOf(branch));
    checkOwner(branch, view);
    const drafts = endingsOf(view);
    if (drafts.length === 0) continue;
    if (view.open) {
      sum.closedTurns += 1;
      sum.voidedAnswers += unused;
    }
    sum.withdrawnInputs += view.queue.length;
    sum.endedTasks += view.tasks.length;
    const header = mergePatch(branch.header, turnPatch(view, drafts));
    session.extend(branch, drafts.map(codec.encode), header);
  }
}

/** Distrust-4. */
function checkOwner({ sessionId, branchId, header }: BranchRecord, { header: told }: BranchView): void {
  const { owner, visibility } = header as RowHeader;
  if (isDeepStrictEqual([owner, visibility], [told.owner, told.visibility])) return;
  const message = `Branch "${branchId}" of session "${sessionId}" can't be imported: its row and its facts name different owners.`;
  throw new BoughError("store_corrupt", message, { data: { sessionId, branchId } });
}

/** Entries of an unknown version count as one. */
function countPermissions(state: JsonObject): number {
  const choices = choicesIn(state);
  return choices.length > 0 ? inForce(choices).length : 1;
}

/** Distrust-3: ids and times are derived from the log itself. */
function endingsOf(view: BranchView): Draft[] {
  const { open, updatedAt: at, state } = view;
  const drafts: Draft[] = [];
  if (open)
    drafts.push({ type: "turn.ended", id: `${reason}.${open.id}`, at, turnId: open.id, status: "interrupted", reason });
  for (const { id } of view.queue) {
    drafts.push({ type: "input.withdrawn", id: `${reason}.${id}`, at, inputId: id, reason });
  }
  for (const { id: taskId } of view.tasks) {
    drafts.push({ type: "task.ended", id: `${taskId}.end`, at, taskId, status: "cancelled", reason });
  }
  for (const { id, turnId } of view.interactions) {
    // Those of a turn go with it.
    if (turnId === undefined)
      drafts.push({ type: "interaction.expired", id: `${reason}.${id}`, at, interactionId: id, reason });
  }
  const isRemembered = Object.hasOwn(state, permissionsSlot) || Object.hasOwn(open?.set ?? {}, permissionsSlot);
  if (isRemembered) {
    drafts.push({ type: "state.changed", id: `${reason}.${view.seq}`, at, set: { [permissionsSlot]: null } });
  }
  return drafts;
}

interface Reading {
  readonly view: BranchView;
  /** How many answers of the open turn no call has used yet. */
  readonly unused: number;
}

/** Folds branches, parents before their forks, and keeps a parent's view at each position where a fork begins. */
class Readings {
  readonly #branches: ReadonlyMap<string, BranchRecord>;
  /** By branch and position. */
  readonly #views = new Map<string, BranchView>();
  readonly #wanted = new Set<string>();

  constructor(branches: readonly BranchRecord[]) {
    this.#branches = new Map(branches.map((branch) => [branch.branchId, branch]));
    for (const branch of branches) this.#wanted.add(this.#beginning(branch));
  }

  read(branch: BranchRecord, facts: readonly (Fact | UnknownFact)[]): Reading {
    const answers = new OpenAnswers();
    try {
      const beginning = this.#beginning(branch);
      const view = beginning === nowhere ? emptyView() : this.#views.get(beginning);
      if (!view) throw new Error("its parent branch is missing");
      const own = copyView(view);
      for (const fact of facts) {
        fold(own, fact);
        answers.see(fact);
        this.#keep(branch.branchId, own);
      }
      if (own.seq !== branch.seq) throw new Error(`it ends at ${own.seq}, not at ${branch.seq}`);
      return { view: own, unused: answers.unused };
    } catch (cause) {
      const { sessionId, branchId } = branch;
      const message = `Branch "${branchId}" of session "${sessionId}" can't be imported: ${(cause as Error).message}`;
      throw new BoughError("store_corrupt", message, { data: { sessionId, branchId }, cause });
    }
  }

  #keep(branchId: string, view: BranchView): void {
    const name = nameOf(branchId, view.seq);
    if (this.#wanted.has(name)) this.#views.set(name, copyView(view));
  }

  /** Where the branch's own facts begin: the ancestor that owns the fork position, and the position. */
  #beginning({ parent }: BranchRecord): string {
    let at = parent;
    for (let hops = 0; at && hops <= this.#branches.size; hops++) {
      const ancestor = this.#branches.get(at.branchId);
      if (at.seq === 0) return nowhere;
      if (!ancestor?.parent || at.seq > baseOf(ancestor)) return nameOf(at.branchId, at.seq);
      at = { branchId: ancestor.parent.branchId, seq: Math.min(at.seq, ancestor.parent.seq) };
    }
    return nowhere;
  }
}

const nowhere = "";

function nameOf(branchId: string, seq: number): string {
  return `${seq} ${branchId}`;
}

/** The answers of the open turn, and whether each was used. */
class OpenAnswers {
  readonly #calls = new Map<string, string | undefined>();
  readonly #answered = new Set<string>();
  readonly #returned = new Set<string>();

  see(fact: Fact | UnknownFact): void {
    if (fact.type === "turn.started") this.#forget();
    else if (fact.type === "interaction.opened") this.#calls.set(fact.id, fact.callId);
    else if (fact.type === "interaction.answered") this.#answered.add(fact.interactionId);
    else if (fact.type === "tool.returned") this.#returned.add(fact.callId);
  }

  get unused(): number {
    return [...this.#answered].filter((id) => !this.#returned.has(this.#calls.get(id) ?? "")).length;
  }

  #forget(): void {
    this.#calls.clear();
    this.#answered.clear();
    this.#returned.clear();
  }
}
