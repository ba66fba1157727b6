// Conversation: what a chat needs of an agent, whether it runs in this process or on a server.

import type { JsonObject } from "../base/json.ts";
import type { BoughEvent, Message } from "../events/index.ts";
import type { BranchRef } from "../log/store.ts";
import type { Interaction } from "../projection/index.ts";
import type {
  BranchHandle,
  CompactionInfo,
  ContentHandle,
  ContextUsage,
  Input,
  QueuedInputBody,
  TaskBody,
} from "../wire/index.ts";

export interface SessionLine {
  readonly id: string;
  readonly lastActivity: number;
  readonly title?: string;
}

export interface BranchLine {
  readonly id: string;
  readonly messages: number;
  readonly forkedFrom?: string;
  /** How many messages it shares with its parent branch. */
  readonly shared?: number;
}

/** The current state of a branch. */
export interface Picture {
  /** The newest messages of closed turns. */
  readonly messages: readonly Message[];
  /** How many messages precede them. */
  readonly before: number;
  /** The messages of the open turn: it is running, or it was interrupted. */
  readonly open?: readonly Message[];
  /** Open questions. */
  readonly interactions: readonly Interaction[];
}

/** The facts that end a turn. */
export const turnEnds: ReadonlySet<string> = new Set(["turn.committed", "turn.ended", "turn.staged", "turn.discarded"]);

export interface Conversation {
  readonly agentId: string;
  /** Lines for the user: the agent, and where the session is stored. */
  readonly about: readonly string[];
  /** Called with notices, such as a lost connection. */
  onNotice: (text: string) => void;
  sessions(limit: number): Promise<readonly SessionLine[]>;
  /** Opens the session with this id, creating it if necessary; without an id, a new session. */
  openSession(sessionId: string | undefined): Promise<string>;
  branches(sessionId: string): Promise<readonly BranchLine[]>;
  look(ref: BranchRef, last: number): Promise<Picture>;
  /** Forks a branch. `keep` is the number of messages that the fork keeps (default: all). */
  fork(ref: BranchRef, options: { newBranchId: string; keep?: number }): Promise<void>;
  /** The branch's handle. */
  branch(ref: BranchRef): BranchHandle;
  /** Compacts the branch by the agent's strategy; `keep` is the number of turns that stay. */
  compact(ref: BranchRef, keep: number | undefined): Promise<CompactionInfo>;
  /** Takes the newest compaction or clearing back. */
  uncompact(ref: BranchRef): Promise<CompactionInfo>;
  /**
   * With input, starts a new turn; without, follows or resumes the open one. The events end with the turn. Throws if the
   * turn can't start.
   */
  run(ref: BranchRef, input: Input | undefined): AsyncIterable<BoughEvent>;
  /** The files of a branch. */
  content(ref: BranchRef): ContentHandle;
  /** Inputs that wait for a turn, oldest first. */
  queue(ref: BranchRef): Promise<readonly QueuedInputBody[]>;
  /** Changes what a queued input says. */
  editInput(ref: BranchRef, inputId: string, text: string): Promise<void>;
  withdrawInput(ref: BranchRef, inputId: string): Promise<void>;
  /** Background tasks that have not ended, oldest first. */
  tasks(ref: BranchRef): Promise<readonly TaskBody[]>;
  cancelTask(ref: BranchRef, taskId: string): Promise<void>;
  /** How full the model's context is on a branch. */
  contextUsage(ref: BranchRef): Promise<ContextUsage>;
  /** Resolves when the answer is stored. */
  respond(ref: BranchRef, interactionId: string, answer: JsonObject): Promise<void>;
  /** Interrupts the branch's active run. */
  interrupt(ref: BranchRef): Promise<void>;
  /** Hands runs of this process over, so that they can be resumed later. */
  close(): Promise<void>;
}
