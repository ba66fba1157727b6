// Commands on sessions and branches: read, decide, append. Usable without any agent.

import { systemClock } from "../base/clock.ts";
import type { JsonObject } from "../base/json.ts";
import type { Fact, QueuedInput } from "../events/index.ts";
import type { ByteRange, ContentUrl } from "../log/content.ts";
import type { MaintenanceReport, SessionQuery, Store } from "../log/store.ts";
import type { RememberedPermission } from "../projection/permissions.ts";
import type { CompactionCheck, CompactionInfo, PromptDiff, SentPrompt } from "../wire/index.ts";
import type { Branch, BranchInfo, PlacedBranch, Visibility } from "./branch.ts";
import * as branches from "./branches.ts";
import * as checkpoints from "./checkpoints.ts";
import * as cleaning from "./cleaning.ts";
import { type CheckCompactionOptions, checkCompaction } from "./compaction/check.ts";
import { type CompactOptions, type Compactor, compact } from "./compaction/compact.ts";
import { listCompactions } from "./compaction/list.ts";
import * as pins from "./compaction/pinning.ts";
import { uncompact } from "./compaction/uncompact.ts";
import * as content from "./content.ts";
import { type Context, checkSessionsOptions, createContext, type Scope, type SessionsOptions } from "./context.ts";
import type { InputMessage } from "./files.ts";
import { type EventQuery, isSelective, readSelected } from "./flow.ts";
import * as forks from "./fork.ts";
import * as history from "./history.ts";
import * as inbox from "./inbox.ts";
import * as interactions from "./interactions.ts";
import { openStore } from "./open-store.ts";
import * as permissions from "./permissions.ts";
import { type DiffOptions, diffPrompts } from "./prompts/diff.ts";
import { promptOf } from "./prompts/prompt-of.ts";
import * as queue from "./queue.ts";
import * as sessions from "./session.ts";
import { listTasks, type TaskInfo } from "./tasks.ts";
import type { TurnOptions } from "./turn-opening.ts";
import type { TurnClose, TurnWriter } from "./turn-writer.ts";
import * as turns from "./turns.ts";
import * as objects from "./working-copies.ts";

export type { ToolReturn } from "../events/drafts.ts";
export type { ByteRange, ContentUrl } from "../log/content.ts";
export type { Branch, BranchInfo, Fork, PlacedBranch, RunInfo } from "./branch.ts";
export type { BranchDetails, BranchPatch, NewBranchDetails } from "./branches.ts";
export type { Checkpoint, CheckpointRequest, CheckpointSource } from "./checkpoints.ts";
export type { InactiveSessions } from "./cleaning.ts";
export type { CheckCompactionOptions } from "./compaction/check.ts";
export type { CompactOptions } from "./compaction/compact.ts";
export type {
  CompactionStrategy,
  StrategyInput,
  StrategyModel,
  StrategyOutput,
  StrategyReply,
} from "./compaction/port.ts";
export { type CompactionFunction, keepTurns } from "./compaction/strategies.ts";
export type {
  ByteStream,
  Content,
  ContentDetails,
  ContentPatch,
  ContentUri,
  NewContent,
  StoredContent,
} from "./content.ts";
export type { ContentLimits } from "./content-limits.ts";
export type { Scope, ScopeObject, SessionsOptions } from "./context.ts";
export type { InputMessage } from "./files.ts";
export type { EventQuery } from "./flow.ts";
export type { ForkCompaction, ForkRequest, OwnedForkRequest, RevertRequest } from "./fork.ts";
export type { EventPage, LogEvent, LogFact, MessagePage } from "./history.ts";
export type { InteractionList, InteractionQuery, OpenInteraction } from "./inbox.ts";
export type { RevokedPermission } from "./permissions.ts";
export type { DiffOptions } from "./prompts/diff.ts";
export type { InputChange, InputEdit, QueueOptions, Queuing } from "./queue.ts";
export { fullHistory, lastN, latestOnly, type Retention, timeBased } from "./retention.ts";
export type { Session, SessionList, SessionPatch } from "./session.ts";
export type { Signal } from "./signals.ts";
export type { TaskInfo } from "./tasks.ts";
export type { TurnOptions } from "./turn-opening.ts";
export type { TurnClose, TurnFailure, TurnWriter } from "./turn-writer.ts";
export type { SavedSessionAndBranch, SessionAndBranch } from "./working-copies.ts";

/**
 * Sessions, branches, turns, checkpoints and content on a store: an object, a directory, or a URL.
 *
 * @example
 * const sessions = await openSessions("./sessions");
 * await sessions.createSession("user-123");
 * await sessions.appendTurn("user-123", [
 *   { role: "user", content: "Hello" },
 *   { role: "assistant", content: "Hello! What shall we build?" },
 * ]);
 * const fork = await sessions.forkBranch("user-123", { newBranchId: "formal" });
 */
export async function openSessions(store?: Store | string, options: SessionsOptions = {}): Promise<Sessions> {
  checkSessionsOptions(options);
  const { clock = systemClock } = options;
  return new Sessions(createContext(await openStore(store, { clock }), options));
}

/** All operations on sessions and branches that need no agent. */
export class Sessions {
  readonly #context: Context;

  /** Use `openSessions`. */
  constructor(context: Context) {
    this.#context = context;
  }

  get store(): Store {
    return this.#context.store;
  }

  /** What an agent adds to compactions: its strategy and its model. */
  protected get compactor(): Compactor {
    return {};
  }

  // Sessions

  /** Creates a session and its branch "main"; `session_exists` if the id is taken. */
  createSession(id?: string, options: sessions.SessionPatch = {}): Promise<sessions.Session> {
    return sessions.createSession(this.#context, id, options);
  }

  /** Returns the session; creates it with this metadata and state if it does not exist. An existing one is not changed. */
  ensureSession(id: string, options: sessions.SessionPatch = {}): Promise<sessions.Session> {
    return sessions.ensureSession(this.#context, id, options);
  }

  /** Returns the session; `session_not_found` if there is none. */
  getSession(sessionId: string): Promise<sessions.Session> {
    return sessions.getSession(this.#context, sessionId);
  }

  /** A page of sessions, most recently active first, optionally filtered by metadata. */
  listSessions(query: SessionQuery = {}): Promise<sessions.SessionList> {
    return sessions.listSessions(this.#context, query);
  }

  /** Merges metadata and state into the session's: keys are added or overwritten, `null` removes. */
  updateSession(
    sessionId: string,
    patch: sessions.SessionPatch,
    options: { expectedVersion?: number } = {},
  ): Promise<sessions.Session> {
    return sessions.updateSession(this.#context, sessionId, patch, options);
  }

  /** Deletes the session and everything in it; `run_active` while a run is active on it. */
  deleteSession(sessionId: string): Promise<void> {
    return sessions.deleteSession(this.#context, sessionId);
  }

  // Branches

  /** Creates a root branch. */
  createBranch(sessionId: string, details: branches.NewBranchDetails = {}): Promise<BranchInfo> {
    return branches.createBranch(this.#context, sessionId, details);
  }

  /**
   * Returns the branch with its messages and state, now or at an earlier position. Discards staged turns that were never
   * saved, if the process or agent that staged them is closed or gone.
   */
  loadBranch(scope: Scope, options: { at?: number } = {}): Promise<Branch> {
    return branches.loadBranch(this.#context, scope, options);
  }

  /** Returns one branch with its place in the tree, without reading its log. */
  getBranch(scope: Scope): Promise<PlacedBranch> {
    return branches.getBranch(this.#context, scope);
  }

  /** Lists branches, oldest first, each with its place in the tree. Hidden ones only with `visibility: "all"`. */
  listBranches(sessionId: string, options: { visibility?: Visibility } = {}): Promise<PlacedBranch[]> {
    return branches.listBranches(this.#context, sessionId, options);
  }

  /** Replaces name, description and tags (`null` removes) and merges metadata. */
  updateBranch(scope: Scope, patch: branches.BranchPatch): Promise<BranchInfo> {
    return branches.updateBranch(this.#context, scope, patch);
  }

  /** The branch and those forked from the same source at the same point, the source first. */
  siblings(scope: Scope): Promise<PlacedBranch[]> {
    return branches.siblings(this.#context, scope);
  }

  /** Creates a branch that shares this one's log up to a point; nothing is copied. */
  forkBranch(scope: Scope, request: forks.OwnedForkRequest = {}): Promise<BranchInfo> {
    return forks.forkBranch(this.#context, scope, request, { compactor: this.compactor });
  }

  /** Takes the branch back to an earlier point. The log keeps its history. */
  revertBranch(scope: Scope, request: forks.RevertRequest = {}): Promise<BranchInfo> {
    return forks.revertBranch(this.#context, scope, request);
  }

  /**
   * Deletes a branch and returns the deleted ids. "main" is protected; a branch with forks needs `recursive`. The branch's
   * hidden forks and the hidden branches it owns are deleted with it.
   */
  deleteBranch(scope: Scope, options: { recursive?: boolean } = {}): Promise<readonly string[]> {
    return branches.deleteBranch(this.#context, scope, options);
  }

  // Compaction

  /**
   * Replaces older messages with something shorter, for models or (with `retention: "hard"`) also for people. The log keeps them.
   * `nothing_to_compact` when nothing new would be covered, `run_active` while a run is active.
   */
  compact(scope: Scope, options: CompactOptions = {}): Promise<CompactionInfo> {
    return compact(this.#context, scope, options, this.compactor);
  }

  /**
   * Takes a compaction back, soft or hard, or a clearing of tool outputs: the newest, or the one named. `compaction_not_found` if
   * it is not in force.
   */
  uncompact(scope: Scope, id?: string): Promise<CompactionInfo> {
    return uncompact(this.#context, scope, id);
  }

  /** Lists the compactions in force and those they replaced, and the clearings in force, newest first. */
  listCompactions(scope: Scope): Promise<CompactionInfo[]> {
    return listCompactions(this.#context, scope);
  }

  /**
   * Asks the same questions with a compaction and without it, and compares the answers. Needs an agent, whose model is asked.
   * Writes nothing.
   */
  checkCompaction(scope: Scope, options: CheckCompactionOptions = {}): Promise<CompactionCheck> {
    return checkCompaction(this.#context, scope, options, this.compactor);
  }

  /** Pins a message: every compaction from now on keeps it verbatim. */
  pin(scope: Scope, messageId: string): Promise<void> {
    return pins.pin(this.#context, scope, messageId);
  }

  /** Removes a pin; compactions that keep the message go on keeping it. */
  unpin(scope: Scope, messageId: string): Promise<void> {
    return pins.unpin(this.#context, scope, messageId);
  }

  /** Lists the ids of pinned messages, in their order. */
  listPins(scope: Scope): Promise<string[]> {
    return pins.listPins(this.#context, scope);
  }

  // Prompts

  /**
   * Rebuilds what the model was sent for a reply and verifies it by its hash; each part says where it comes from.
   * `prompt_not_kept` for a message that no model call made.
   */
  promptOf(scope: Scope, messageId: string): Promise<SentPrompt> {
    return promptOf(this.#context, scope, messageId);
  }

  /** Finds the first part in which the prompts of two replies differ, the earlier reply first, and what made it. */
  diffPrompts(scope: Scope, from: string, to: string, options: DiffOptions = {}): Promise<PromptDiff> {
    return diffPrompts(this.#context, scope, from, to, options);
  }

  // Turns

  /** Begins a turn with its input. The writer holds the branch until the turn closes. */
  beginTurn(scope: Scope, input: string | readonly InputMessage[], options: TurnOptions = {}): Promise<TurnWriter> {
    return turns.beginTurn(this.#context, scope, input, options);
  }

  /** Resumes the open turn, for example after a crash; `nothing_to_resume` if there is none. */
  resumeTurn(scope: Scope, options: TurnOptions = {}): Promise<TurnWriter> {
    return turns.resumeTurn(this.#context, scope, options);
  }

  /**
   * Begins a turn with the inputs that are next in the branch's queue; undefined if none waits, `turn_open` while another turn
   * is open. Runs of an agent do this by themselves.
   */
  takeInputs(scope: Scope, options: TurnOptions = {}): Promise<TurnWriter | undefined> {
    return turns.takeInputs(this.#context, scope, options);
  }

  /** Appends a complete turn at once, for example to import one. */
  appendTurn(scope: Scope, messages: readonly InputMessage[], close: TurnClose & TurnOptions = {}) {
    return turns.appendTurn(this.#context, scope, messages, close);
  }

  // Interactions

  /** Answers an open interaction, exactly once; a later answer fails with `interaction_closed`. */
  answer(scope: Scope, interactionId: string, answer: JsonObject, options: { by?: string } = {}): Promise<Fact> {
    return interactions.answerInteraction(this.#context, scope, interactionId, answer, options);
  }

  /** Lists open questions of all sessions or of one, including those that an active run waits for. */
  listInteractions(query: inbox.InteractionQuery = {}): Promise<inbox.InteractionList> {
    return inbox.listInteractions(this.#context, query);
  }

  // Queued inputs

  /**
   * Queues an input on the branch, whether or not a run is active: the next turn takes it, or with `when: "steer"` the open one.
   * An agent takes it; without one it waits. The same `inputId` is queued once.
   */
  queueInput(scope: Scope, input: string | readonly InputMessage[], options: queue.QueueOptions = {}) {
    return queue.queueInput(this.#context, scope, input, options);
  }

  /** Lists the inputs that wait on the branch, oldest first. */
  listQueue(scope: Scope): Promise<readonly QueuedInput[]> {
    return queue.listQueue(this.#context, scope);
  }

  /** Changes what a queued input says, or when it is taken; `input_closed` once it was taken or withdrawn. */
  editInput(
    scope: Scope,
    inputId: string,
    edit: queue.InputEdit,
    change: queue.InputChange = {},
  ): Promise<QueuedInput> {
    return queue.editInput(this.#context, scope, inputId, edit, change);
  }

  /** Withdraws a queued input; `input_closed` once it was taken or withdrawn. */
  withdrawInput(scope: Scope, inputId: string, change: queue.InputChange = {}): Promise<QueuedInput> {
    return queue.withdrawInput(this.#context, scope, inputId, change);
  }

  // Background tasks

  /** Lists the background tasks of the branch that have not ended, oldest first. */
  listTasks(scope: Scope): Promise<readonly TaskInfo[]> {
    return listTasks(this.#context, scope);
  }

  // Remembered permissions

  /** Lists the permissions that were granted or denied with "always" in the session. */
  listPermissions(sessionId: string): Promise<RememberedPermission[]> {
    return permissions.listPermissions(this.#context, sessionId);
  }

  /** Revokes a tool's remembered permission, for one agent or all; the next call asks again. Returns how many it revoked. */
  revokePermission(sessionId: string, revoked: permissions.RevokedPermission): Promise<number> {
    return permissions.revokePermission(this.#context, sessionId, revoked);
  }

  // Working copies

  /** Loads the session and the branch, creating what does not exist. */
  loadSessionAndBranch(scope: Scope): Promise<objects.SessionAndBranch> {
    return objects.loadSessionAndBranch(this.#context, scope);
  }

  /** Saves the session's changed metadata and state, and the branch's staged turns; `savedTurns` has their ids. */
  saveSessionAndBranch(session: sessions.Session, branch: Branch): Promise<objects.SavedSessionAndBranch> {
    return objects.saveSessionAndBranch(this.#context, { session, branch });
  }

  // Checkpoints

  /** Saves a checkpoint: a name for the branch's latest position. */
  saveCheckpoint(scope: Scope, request: checkpoints.CheckpointRequest = {}): Promise<checkpoints.Checkpoint> {
    return checkpoints.saveCheckpoint(this.#context, scope, request);
  }

  /** Lists checkpoints, newest first: of one branch, or of the whole session if the branch is omitted. */
  listCheckpoints(scope: Scope): Promise<checkpoints.Checkpoint[]> {
    return checkpoints.listCheckpoints(this.#context, scope);
  }

  /** Loads the branch at a checkpoint. `checkpoint_stale` if it has moved past that, unless `ifStale` forks or reverts. */
  loadAtCheckpoint(
    scope: Scope,
    checkpointId: string,
    options: { ifStale?: "refuse" | "fork" | "revert"; newBranchId?: string } = {},
  ): Promise<Branch> {
    return checkpoints.loadAtCheckpoint(this.#context, scope, checkpointId, options);
  }

  // Cleaning

  /** Keeps the newest checkpoints (10 by default) of each branch; returns how many were deleted. */
  pruneCheckpoints(sessionId: string, options: { keepLatest?: number } = {}): Promise<number> {
    return cleaning.pruneCheckpoints(this.#context, sessionId, options);
  }

  /** Deletes checkpoints by id; returns how many existed. */
  deleteCheckpoints(sessionId: string, ids: readonly string[]): Promise<number> {
    return cleaning.deleteCheckpoints(this.#context, sessionId, ids);
  }

  /** Deletes checkpoints older than the cutoff in every session; returns how many were deleted. */
  deleteOlderThan(cutoff: number | Date): Promise<number> {
    return cleaning.deleteOlderThan(this.#context, cutoff);
  }

  /** Deletes sessions without activity for `olderThan` milliseconds; with `dryRun` it only lists them. */
  deleteInactiveSessions(options: { olderThan: number; dryRun?: boolean }): Promise<cleaning.InactiveSessions> {
    return cleaning.deleteInactiveSessions(this.#context, options);
  }

  // Content

  /** Stores bytes once per session, streamed, and returns the reference that messages use. `content_too_large`. */
  putContent(scope: Scope, upload: content.NewContent): Promise<content.Content> {
    return content.putContent(this.#context, scope, upload);
  }

  /** Returns content visible to the branch, by id or reference; iterate over it to stream its bytes. */
  getContent(scope: Scope, idOrUri: string, options?: { range?: ByteRange }): Promise<content.StoredContent> {
    return content.getContent(this.#context, scope, idOrUri, options);
  }

  /** Lists the content visible to the branch: its own, and its ancestors' from before the fork. */
  listContent(scope: Scope): Promise<content.Content[]> {
    return content.listContent(this.#context, scope);
  }

  /** Changes what is noted about content; null removes a detail. */
  updateContent(scope: Scope, idOrUri: string, patch: content.ContentPatch): Promise<content.Content> {
    return content.updateContent(this.#context, scope, idOrUri, patch);
  }

  /** Deletes the branch's own reference to the content; false if it had none. */
  deleteContent(scope: Scope, idOrUri: string): Promise<boolean> {
    return content.deleteContent(this.#context, scope, idOrUri);
  }

  /** A URL for direct downloads, where the store's bytes are kept in a place that has such. */
  contentUrl(scope: Scope, idOrUri: string, options?: { expiresMs?: number }): Promise<ContentUrl | undefined> {
    return content.contentUrl(this.#context, scope, idOrUri, options);
  }

  // The log

  /**
   * A page of the branch's stored events, without the address that live events carry: up to `limit` (1,000) of them. If the
   * page has `after`, pass it to get the next page. `turnId`, `runId` and `type` filter.
   */
  events(scope: Scope, options: EventQuery = {}): Promise<history.EventPage> {
    if (isSelective(options)) return readSelected(this.#context, scope, options);
    return history.readEventPage(this.#context, scope, options);
  }

  /** Yields every event after a position with its address, each once and in order, and then new ones as they come. */
  watch(scope: Scope, options: { after?: number; signal?: AbortSignal } = {}): AsyncGenerator<history.LogEvent> {
    return history.watchEvents(this.#context, scope, options);
  }

  /** Returns the newest messages without loading the rest of the branch. */
  messages(scope: Scope, options: { last?: number; before?: number } = {}): Promise<history.MessagePage> {
    return history.readMessages(this.#context, scope, options);
  }

  // The store

  /** Checks the stored data and removes remains of crashes. */
  maintain(): Promise<MaintenanceReport> {
    return this.#context.store.maintain();
  }

  /** Waits for pending writes and closes the store. */
  close(): Promise<void> {
    return this.#context.close();
  }
}
