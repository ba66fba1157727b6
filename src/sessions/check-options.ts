// The keys that the options of session methods may have. Values are checked where they are used.

import { checkOptions, checkSpelling, type OptionTable, oneOf, optionKeys, optionTable } from "../base/options.ts";
import type { ReadOptions, SessionQuery } from "../log/store.ts";
import type { BranchDetails, BranchPatch } from "./branches.ts";
import type { CheckpointRequest } from "./checkpoints.ts";
import type { NewContent } from "./content.ts";
import type { Scope } from "./context.ts";
import type { ForkRequest, RevertRequest } from "./fork.ts";
import type { SessionPatch } from "./session.ts";
import type { TurnClose, TurnOptions } from "./turns.ts";

const scope = { sessionId: true, branchId: true } as const;
const details = { name: true, description: true, tags: true, metadata: true } as const;
const close = { usage: true, iterations: true, reason: true, state: true } as const;
const turn = { runId: true, agentId: true, metadata: true, leaseMs: true, retention: true } as const;

const scopeTable = optionKeys<Scope>(scope);
const forkStates = oneOf("fork-point", "current", "none");

/** By the method that takes them. */
const tables = {
  createSession: optionKeys<SessionPatch>({ metadata: true, state: true }),
  updateSession: optionKeys<SessionPatch>({ metadata: true, state: true }),
  listSessions: optionKeys<SessionQuery>({ metadata: true, activeBefore: true, limit: true, cursor: true }),
  createBranch: optionKeys<BranchDetails & { branchId?: string }>({ ...details, branchId: true }),
  updateBranch: optionKeys<BranchPatch>(details),
  loadBranch: optionKeys<{ at?: number }>({ at: true }),
  deleteBranch: optionKeys<{ recursive?: boolean }>({ recursive: true }),
  forkBranch: new Map([
    ...optionKeys<ForkRequest>({
      ...scope,
      ...details,
      from: true,
      fromMessageIndex: true,
      fromSeq: true,
      newBranchId: true,
      state: true,
    }),
    ["state", forkStates],
  ]) as OptionTable,
  revertBranch: optionKeys<RevertRequest>({
    ...scope,
    to: true,
    toMessageIndex: true,
    toSeq: true,
    checkpointId: true,
  }),
  beginTurn: optionKeys<TurnOptions>(turn),
  resumeTurn: optionKeys<TurnOptions>(turn),
  appendTurn: optionKeys<TurnClose & TurnOptions>({ ...turn, ...close }),
  saveCheckpoint: optionKeys<CheckpointRequest>({
    id: true,
    label: true,
    step: true,
    source: true,
    seq: true,
    retention: true,
  }),
  loadAtCheckpoint: optionTable<{ ifStale?: string; newBranchId?: string }>({
    ifStale: oneOf("refuse", "fork", "revert"),
    newBranchId: { fits: (value) => typeof value === "string", wanted: "a text" },
  }),
  putContent: optionKeys<NewContent>({ bytes: true, mediaType: true, name: true }),
  events: optionKeys<ReadOptions>({ after: true, before: true, limit: true, reverse: true }),
  watch: optionKeys<{ after?: number; signal?: AbortSignal }>({ after: true, signal: true }),
  messages: optionKeys<{ last?: number; before?: number }>({ last: true, before: true }),
};

/** Refuses keys that the method does not take (`invalid_argument`). */
export function checkMethod(method: keyof typeof tables, options: unknown): void {
  checkOptions(`The options of ${method}`, options, tables[method]);
}

/** A scope may be a larger object, such as a run that was left; but not one whose ids are misspelt. */
export function checkScope(given: Scope): void {
  checkSpelling("A scope", given, scopeTable);
}
