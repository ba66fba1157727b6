// What a person does to a branch, as one object for rows, keys and panes. What ends on another branch goes there.

import { useMemo, useState } from "react";
import type { BranchView } from "../data/bough.ts";
import type { LoggedBranch } from "../data/use-branch-log.ts";
import { branchPlace, go, linkTo, type Place } from "../place.ts";
import { useToaster } from "../ui/toast.tsx";
import type { BranchScope, RowActions } from "./context.tsx";
import { questionsByCall } from "./rows.ts";
import { markAfter, type VersionIndex } from "./versions.ts";

export interface BranchActions extends RowActions {
  forkAt(seq: number): Promise<void>;
  revertTo(seq: number): Promise<void>;
  undo(): Promise<void>;
  /** Interrupts the run, if there is one. */
  stop(): Promise<void>;
  /** Another branch is being chosen for a comparison. */
  readonly isComparing: boolean;
  startCompare(isWanted: boolean): void;
  showBranch(branchId: string): void;
  compareWith(branchId: string | undefined): void;
}

export function useBranchActions(
  scope: BranchScope,
  place: Place,
  { use, log }: LoggedBranch,
  view: BranchView,
  versions: VersionIndex,
): BranchActions {
  const { attempt, say } = useToaster();
  const { handle, interactions, refresh, stop } = use;
  const isRunning = use.status === "running";
  const questions = useMemo(() => questionsByCall(interactions), [interactions]);
  const [editing, startEdit] = useState<string>();
  const [isComparing, startCompare] = useState(false);
  const pins = useMemo(() => new Set(pinnedIn(view)), [view]);
  return useMemo((): BranchActions => {
    const showBranch = (branchId: string) => go(branchPlace(scope.sessionId, branchId, place.pane));
    const toFork = async (branchId: string) => {
      await refresh();
      showBranch(branchId);
    };
    return {
      scope,
      isPast: place.at !== undefined,
      agentName: scope.agentId,
      editing,
      startEdit,
      isComparing,
      startCompare,
      seqOf: (id) => log.seqOf.get(id),
      callFact: (id) => log.calls.get(id),
      questionOf: (id) => questions.get(id),
      versionsAt: (id) => (id === undefined ? versions.atEnd : versions.byMessage.get(id)),
      isPinned: (id) => pins.has(id),
      showBranch,
      showVersion: ({ branchIds, current, after }, by) => {
        const to = branchIds[current + by];
        if (to !== undefined) go({ ...branchPlace(scope.sessionId, to, place.pane), message: markAfter(after) });
      },
      showChild: ({ sessionId, branchId }) => go(branchPlace(sessionId, branchId, place.pane)),
      showPrompt: (message) => go({ ...place, pane: "model", message }),
      compareWith: (other) => {
        const { with: _with, ...rest } = place;
        go(other === undefined ? rest : { ...rest, with: other });
      },
      linkTo: (message) =>
        void attempt(async () => {
          await navigator.clipboard.writeText(new URL(linkTo({ ...place, message }), location.href).href);
          say("Copied a link to this message.");
        }),
      async edit(messageId, text) {
        await attempt(async () => toFork((await handle.edit(messageId, text)).branch.scope.branchId));
      },
      async again(messageId) {
        await attempt(async () => toFork((await handle.regenerate(messageId)).branch.scope.branchId));
      },
      async fork(messageId) {
        await attempt(async () => toFork((await handle.fork({ from: messageId })).scope.branchId));
      },
      async forkAt(seq) {
        await attempt(async () => toFork((await handle.fork({ fromSeq: seq })).scope.branchId));
      },
      async revertTo(seq) {
        const before = log.length;
        const isDone = await attempt(() => handle.revert({ toSeq: seq, expectedSeq: before }));
        if (!isDone) return;
        const { at: _at, ...now } = place;
        go(now);
        say(`Went back to ${seq}. The log keeps what came after.`, {
          label: "Bring it back as a branch",
          onClick: () => void attempt(async () => toFork((await handle.fork({ fromSeq: before })).scope.branchId)),
        });
      },
      async undo() {
        const before = log.length;
        const undone = await attempt(() => handle.undo());
        if (!undone) return;
        say("Took back the last turn.", {
          label: "Bring it back as a branch",
          onClick: () => void attempt(async () => toFork((await handle.fork({ fromSeq: before })).scope.branchId)),
        });
      },
      async stop() {
        if (isRunning && (await attempt(() => stop()))) say("Stopped.");
      },
      async pin(messageId, isWanted) {
        await attempt(() => (isWanted ? handle.pin(messageId) : handle.unpin(messageId)));
      },
      async uncompact(compactionId) {
        await attempt(() => handle.uncompact(compactionId));
      },
    };
  }, [
    scope,
    place,
    handle,
    log,
    questions,
    versions,
    pins,
    editing,
    isComparing,
    isRunning,
    stop,
    refresh,
    attempt,
    say,
  ]);
}

function pinnedIn({ state }: BranchView): readonly string[] {
  const pins = state["@pins"];
  return typeof pins === "object" && pins !== null ? Object.keys(pins) : [];
}
