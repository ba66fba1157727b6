// Commands on sessions and branches: read, decide, append. Usable without any agent.

import { systemClock } from "../base/clock.ts";
import type { JsonObject } from "../base/json.ts";
import type { Fact, NewMessage } from "../events/index.ts";
import type { MaintenanceReport, SessionQuery, Store } from "../log/store.ts";
import type { RememberedPermission } from "../projection/permissions.ts";
import type { Branch, BranchInfo, PlacedBranch } from "./branch.ts";
import * as branches from "./branches.ts";
import * as checkpoints from "./checkpoints.ts";
import * as cleaning from "./cleaning.ts";
import * as content from "./content.ts";
import { type Context, createContext, type Scope, type SessionsOptions } from "./context.ts";
import { type EventQuery, isSelective, readSelected } from "./flow.ts";
import * as forks from "./fork.ts";
import * as history from "./history.ts";
import * as inbox from "./inbox.ts";
import * as interactions from "./interactions.ts";
import * as objects from "./objects.ts";
import { openStore } from "./open-store.ts";
import * as permissions from "./permissions.ts";
import * as sessions from "./session.ts";
import * as turns from "./turns.ts";

export type { Branch, BranchInfo, Fork, PlacedBranch, RunInfo } from "./branch.ts";
export type { BranchDetails, BranchPatch } from "./branches.ts";
export type { Checkpoint, CheckpointRequest, CheckpointSource } from "./checkpoints.ts";
export type { InactiveSessions } from "./cleaning.ts";
export type { Content, ContentUri, NewContent } from "./content.ts";
export type { Scope, SessionsOptions } from "./context.ts";
export type { EventQuery } from "./flow.ts";
export type { ForkRequest, RevertRequest } from "./fork.ts";
export type { EventPage, LogEvent, LogFact, MessagePage } from "./history.ts";
export type { InteractionList, InteractionQuery, OpenInteraction } from "./inbox.ts";
export type { SavedSessionAndBranch, SessionAndBranch } from "./objects.ts";
export type { RevokedPermission } from "./permissions.ts";
export { fullHistory, lastN, latestOnly, type Retention, timeBased } from "./retention.ts";
export type { Session, SessionList, SessionPatch } from "./session.ts";
export type { ToolReturn, TurnClose, TurnFailure, TurnOptions, TurnWriter } from "./turns.ts";

/**
 * Sessions, branches, turns, checkpoints and content on a store: an object, a directory, or a URL.
 *
 * @example
 * const sessions = await openSessions("./sessions");
 * await sessions.createSession("user-123");
 * await sessions.appendTurn({ sessionId: "user-123" }, [
 *   { role: "user", content: "Hello" },
 *   { role: "assistant", content: "Hello! What shall we build?" },
 * ]);
 * const fork = await sessions.forkBranch({ sessionId: "user-123", newBranchId: "formal" });
 */
export async function openSessions(store?: Store | string, options: SessionsOptions = {}): Promise<Sessions> {
  const { clock = systemClock } = options;
  return new Sessions(createContext(await openStore(store, { clock }), options));
}

/** Everything that can be done with sessions and branches without an agent. */
export class Sessions {
  readonly #context: Context;

  /** Use `openSessions`. */
  constructor(context: Context) {
    this.#context = context;
  }

  get store(): Store {
    return this.#context.store;
  }

  // Sessions

  /** Creates a session and its branch "main"; `session_exists` when the id is taken. */
  createSession(id?: string, options: sessions.SessionPatch = {}): Promise<sessions.Session> {
    return sessions.createSession(this.#context, id, options);
  }

  /** `session_not_found` when there is none. */
  getSession(sessionId: string): Promise<sessions.Session> {
    return sessions.getSession(this.#context, sessionId);
  }

  /** A page of sessions, newest activity first, optionally only those with certain metadata. */
  listSessions(query: SessionQuery = {}): Promise<sessions.SessionList> {
    return sessions.listSessions(this.#context, query);
  }

  /** Merge patches: keys are added or overwritten, `null` removes. */
  updateSession(
    sessionId: string,
    patch: sessions.SessionPatch,
    options: { expectedVersion?: number } = {},
  ): Promise<sessions.Session> {
    return sessions.updateSession(this.#context, sessionId, patch, options);
  }

  /** Removes the session and all that belongs to it; `run_active` while something runs. */
  deleteSession(sessionId: string): Promise<void> {
    return sessions.deleteSession(this.#context, sessionId);
  }

  // Branches

  /** Creates an empty branch that is nobody's fork. */
  createBranch(sessionId: string, details: branches.BranchDetails & { branchId?: string } = {}): Promise<BranchInfo> {
    return branches.createBranch(this.#context, sessionId, details);
  }

  /**
   * The branch with its messages and state, now or at an earlier position. Complete turns that wait to be saved are
   * discarded when whoever staged them is closed or gone.
   */
  loadBranch(sessionId: string, branchId?: string, options: { at?: number } = {}): Promise<Branch> {
    return branches.loadBranch(this.#context, scopeOf(sessionId, branchId), options);
  }

  /** One branch with its place in the tree, without reading its log. */
  getBranch(sessionId: string, branchId: string): Promise<PlacedBranch> {
    return branches.getBranch(this.#context, { sessionId, branchId });
  }

  /** All branches of the session, oldest first, each with its place in the tree. */
  listBranches(sessionId: string): Promise<PlacedBranch[]> {
    return branches.listBranches(this.#context, sessionId);
  }

  /** Name, description and tags are replaced (`null` removes), metadata is merged. */
  updateBranch(sessionId: string, branchId: string, patch: branches.BranchPatch): Promise<BranchInfo> {
    return branches.updateBranch(this.#context, { sessionId, branchId }, patch);
  }

  /** The branch and those forked from the same source at the same point, the source first. */
  siblings(sessionId: string, branchId: string): Promise<PlacedBranch[]> {
    return branches.siblings(this.#context, { sessionId, branchId });
  }

  /** A new branch that shares this one's log up to a point; nothing is copied. */
  forkBranch(request: forks.ForkRequest): Promise<BranchInfo> {
    return forks.forkBranch(this.#context, request);
  }

  /** Takes the branch back to a point; the log keeps what happened. */
  revertBranch(request: forks.RevertRequest): Promise<BranchInfo> {
    return forks.revertBranch(this.#context, request);
  }

  /** Returns the ids removed. "main" is protected; a branch with forks needs `recursive`. */
  deleteBranch(sessionId: string, branchId: string, options: { recursive?: boolean } = {}): Promise<readonly string[]> {
    return branches.deleteBranch(this.#context, { sessionId, branchId }, options);
  }

  // Turns

  /** Begins a turn with its input and holds the branch until the turn closes. */
  beginTurn(
    scope: Scope,
    input: string | readonly NewMessage[],
    options: turns.TurnOptions = {},
  ): Promise<turns.TurnWriter> {
    return turns.beginTurn(this.#context, scope, input, options);
  }

  /** Takes up the turn that a crash left open; `nothing_to_resume` when there is none. */
  resumeTurn(scope: Scope, options: turns.TurnOptions = {}): Promise<turns.TurnWriter> {
    return turns.resumeTurn(this.#context, scope, options);
  }

  /** A whole turn in one append. */
  appendTurn(scope: Scope, messages: readonly NewMessage[], close: turns.TurnClose & turns.TurnOptions = {}) {
    return turns.appendTurn(this.#context, scope, messages, close);
  }

  // Interactions

  /** Answers an open interaction, exactly once; `interaction_closed` for whoever comes late. */
  answer(scope: Scope, interactionId: string, answer: JsonObject, options: { by?: string } = {}): Promise<Fact> {
    return interactions.answerInteraction(this.#context, scope, interactionId, answer, options);
  }

  /** Questions that wait for an answer, of all sessions or one; those that a live run waits for included. */
  listInteractions(query: inbox.InteractionQuery = {}): Promise<inbox.InteractionList> {
    return inbox.listInteractions(this.#context, query);
  }

  // Remembered permissions

  /** The permissions that were given or denied with "always" and hold in the session. */
  listPermissions(sessionId: string): Promise<RememberedPermission[]> {
    return permissions.listPermissions(this.#context, sessionId);
  }

  /** Revokes what was remembered for a tool, of one agent or of all; the next call is asked for. Returns how many went. */
  revokePermission(sessionId: string, revoked: permissions.RevokedPermission): Promise<number> {
    return permissions.revokePermission(this.#context, sessionId, revoked);
  }

  // Objects in hand

  /** Loads both, creating what is missing. */
  loadSessionAndBranch(sessionId: string, branchId?: string): Promise<objects.SessionAndBranch> {
    return objects.loadSessionAndBranch(this.#context, scopeOf(sessionId, branchId));
  }

  /** Saves the session's changed metadata and state and the branch's complete turns that wait; `savedTurns` says which. */
  saveSessionAndBranch(session: sessions.Session, branch: Branch): Promise<objects.SavedSessionAndBranch> {
    return objects.saveSessionAndBranch(this.#context, { session, branch });
  }

  // Checkpoints

  /** Names the branch's newest position. */
  saveCheckpoint(scope: Scope, request: checkpoints.CheckpointRequest = {}): Promise<checkpoints.Checkpoint> {
    return checkpoints.saveCheckpoint(this.#context, scope, request);
  }

  /** The manifest, newest first; of the whole session when the branch is left out. */
  listCheckpoints(scope: Scope): Promise<checkpoints.Checkpoint[]> {
    return checkpoints.listCheckpoints(this.#context, scope);
  }

  /** The branch at a checkpoint; `checkpoint_stale` when it has moved on, unless asked to fork or revert. */
  loadAtCheckpoint(
    scope: Scope,
    checkpointId: string,
    options: { ifStale?: "refuse" | "fork" | "revert"; newBranchId?: string } = {},
  ): Promise<Branch> {
    return checkpoints.loadAtCheckpoint(this.#context, scope, checkpointId, options);
  }

  // Cleaning

  /** Keeps the newest checkpoints (10 by default) of each branch; returns how many went. */
  pruneCheckpoints(sessionId: string, options: { keepLatest?: number } = {}): Promise<number> {
    return cleaning.pruneCheckpoints(this.#context, sessionId, options);
  }

  /** Removes checkpoints by id; returns how many were there. */
  deleteCheckpoints(sessionId: string, ids: readonly string[]): Promise<number> {
    return cleaning.deleteCheckpoints(this.#context, sessionId, ids);
  }

  /** Removes checkpoints older than a moment in every session; returns how many went. */
  deleteOlderThan(cutoff: number | Date): Promise<number> {
    return cleaning.deleteOlderThan(this.#context, cutoff);
  }

  /** Deletes sessions without activity for `olderThan` milliseconds; `dryRun` only says which. */
  deleteInactiveSessions(options: { olderThan: number; dryRun?: boolean }): Promise<cleaning.InactiveSessions> {
    return cleaning.deleteInactiveSessions(this.#context, options);
  }

  // Content

  /** Stores bytes once per session and returns the reference that messages use. */
  putContent(scope: Scope, upload: content.NewContent): Promise<content.Content> {
    return content.putContent(this.#context, scope, upload);
  }

  /** Bytes by id or reference, as far as the branch sees them. */
  getContent(scope: Scope, idOrUri: string): Promise<{ content: content.Content; bytes: Uint8Array }> {
    return content.getContent(this.#context, scope, idOrUri);
  }

  /** What the branch sees: its own uploads and its ancestors'. */
  listContent(scope: Scope): Promise<content.Content[]> {
    return content.listContent(this.#context, scope);
  }

  /** Removes the branch's own reference; false when it had none. */
  deleteContent(scope: Scope, idOrUri: string): Promise<boolean> {
    return content.deleteContent(this.#context, scope, idOrUri);
  }

  // The log

  /**
   * A page of the branch's events as the log keeps them, without the routing that live events carry: 1,000 unless `limit` says
   * otherwise. Its `after` is where the next one begins, if there is one. With `turnId`, `runId` or `type`, only those.
   */
  events(scope: Scope, options: EventQuery = {}): Promise<history.EventPage> {
    if (isSelective(options)) return readSelected(this.#context, scope, options);
    return history.readEventPage(this.#context, scope, options);
  }

  /** Every event after a position with its address, each once and in order, and then those to come. */
  watch(scope: Scope, options: { after?: number; signal?: AbortSignal } = {}): AsyncGenerator<history.LogEvent> {
    return history.watchEvents(this.#context, scope, options);
  }

  /** The newest messages, without loading the rest of the branch. */
  messages(scope: Scope, options: { last?: number; before?: number } = {}): Promise<history.MessagePage> {
    return history.readMessages(this.#context, scope, options);
  }

  // The store

  /** Checks what is stored and cleans up what crashes left behind. */
  maintain(): Promise<MaintenanceReport> {
    return this.#context.store.maintain();
  }

  /** Finishes what is under way and closes the store. */
  async close(): Promise<void> {
    this.#context.staging.close();
    await this.#context.views.settle();
    await this.#context.store.close();
  }
}

function scopeOf(sessionId: string, branchId: string | undefined): Scope {
  return branchId === undefined ? { sessionId } : { sessionId, branchId };
}
