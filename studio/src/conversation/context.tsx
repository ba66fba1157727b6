// What every row needs to know of the branch that it is on.

import { createContext, useContext } from "react";
import type { PendingInteraction } from "../data/bough.ts";
import type { CallFact } from "../data/branch-log.ts";
import type { Versions } from "./versions.ts";

export interface BranchScope {
  readonly agentId: string;
  readonly sessionId: string;
  readonly branchId: string;
}

export interface RowActions {
  readonly scope: BranchScope;
  /** The conversation is shown as it was: nothing can be changed. */
  readonly isPast: boolean;
  readonly seqOf: (messageId: string) => number | undefined;
  readonly callFact: (callId: string) => CallFact | undefined;
  readonly questionOf: (callId: string) => PendingInteraction | undefined;
  /** The versions of a message; without an id, those that go on where the branch ends. */
  readonly versionsAt: (messageId: string | undefined) => Versions | undefined;
  readonly isPinned: (messageId: string) => boolean;
  readonly agentName: string;
  /** The message that is being given other words. */
  readonly editing: string | undefined;
  startEdit(messageId: string | undefined): void;
  edit(messageId: string, text: string): Promise<void>;
  again(messageId: string): Promise<void>;
  fork(messageId: string): Promise<void>;
  pin(messageId: string, isPinned: boolean): Promise<void>;
  uncompact(compactionId: string): Promise<void>;
  showPrompt(messageId: string): void;
  linkTo(messageId: string): void;
  /** Goes to a version, before or after the one on the screen. */
  showVersion(versions: Versions, by: number): void;
  showChild(branch: { sessionId: string; branchId: string }): void;
}

const RowContext = createContext<RowActions | undefined>(undefined);
export const RowProvider = RowContext.Provider;

export function useRowActions(): RowActions {
  const actions = useContext(RowContext);
  if (!actions) throw new Error("A row is drawn on a branch only.");
  return actions;
}
