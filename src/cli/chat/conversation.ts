// Conversation: what a chat is held over, whether the agent runs in this process or behind a server.

import type { JsonObject } from "../../base/json.ts";
import type { BoughEvent, Message } from "../../events/index.ts";
import type { BranchRef } from "../../log/store.ts";
import type { Interaction } from "../../projection/index.ts";

export interface SessionLine {
  readonly id: string;
  readonly lastActivity: number;
}

export interface BranchLine {
  readonly id: string;
  readonly messages: number;
  readonly forkedFrom?: string;
  /** How many messages it shares with that branch. */
  readonly shared?: number;
}

/** A branch as it stands. */
export interface Picture {
  /** The newest messages of closed turns. */
  readonly messages: readonly Message[];
  /** How many came before them. */
  readonly before: number;
  /** The messages of a turn that has no end: somebody works on it, or it was left behind. */
  readonly open?: readonly Message[];
  /** Questions that wait for an answer. */
  readonly interactions: readonly Interaction[];
}

/** The facts that end a turn. */
export const turnEnds: ReadonlySet<string> = new Set(["turn.committed", "turn.ended", "turn.staged", "turn.discarded"]);

export interface Conversation {
  readonly agentId: string;
  /** Lines for the person: who speaks, and where it is kept. */
  readonly about: readonly string[];
  /** Told of what happens beside the conversation, such as a lost connection. */
  onNotice: (text: string) => void;
  sessions(limit: number): Promise<readonly SessionLine[]>;
  /** The session of that id, made if need be; without an id a new one. */
  openSession(sessionId: string | undefined): Promise<string>;
  branches(sessionId: string): Promise<readonly BranchLine[]>;
  look(ref: BranchRef, last: number): Promise<Picture>;
  /** Keeps the first so many messages; all of them when nothing is said. */
  fork(ref: BranchRef, options: { newBranchId: string; keep?: number }): Promise<void>;
  /** Takes the branch back so that this message is its last; without one, that it has none. */
  revert(ref: BranchRef, to: string | undefined): Promise<void>;
  /**
   * With input, a new turn; without, the one that is under way or was left open. The events end with the turn; what could
   * not begin throws.
   */
  run(ref: BranchRef, input: string | undefined): AsyncIterable<BoughEvent>;
  /** Resolves when the answer is stored. */
  respond(ref: BranchRef, interactionId: string, answer: JsonObject): Promise<void>;
  /** Interrupts what works on the branch. */
  interrupt(ref: BranchRef): Promise<void>;
  /** What runs in this process is handed over: it can be taken up later. */
  close(): Promise<void>;
}
