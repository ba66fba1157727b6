// One branch on the screen: its conversation now or at a position, its questions, its composer, its time and its panes.

import { useDeferredValue, useEffect, useMemo, useRef } from "react";
import type { Agent } from "../agents/use-agent.ts";
import { BranchesPane } from "../branches/branches-pane.tsx";
import { branchName, originOf } from "../branches/tree-rows.ts";
import { Compare } from "../compare/compare.tsx";
import { isRemoteError, type BranchView as View } from "../data/bough.ts";
import { useClient } from "../data/session.tsx";
import { type LoggedBranch, useLoggedBranch } from "../data/use-branch-log.ts";
import { forgetVisit, noteVisit } from "../data/visits.ts";
import { LogPane } from "../log/log-pane.tsx";
import { ModelPane } from "../model/model-pane.tsx";
import { Palette } from "../palette/palette.tsx";
import { branchPlace, go, type Pane, type Place } from "../place.ts";
import { TimeStrip } from "../time/time-strip.tsx";
import { Button } from "../ui/button.tsx";
import { sentenceOf } from "../ui/toast.tsx";
import { useBranchActions } from "./branch-actions.ts";
import { useBranchKeys } from "./branch-keys.ts";
import { Composer } from "./composer.tsx";
import { type BranchScope, RowProvider } from "./context.tsx";
import { Conversation } from "./conversation.tsx";
import { FilesPane } from "./files-pane.tsx";
import { InfoPane } from "./info-pane.tsx";
import { QuestionCard } from "./question.tsx";
import { type Row, Rows, visibleMessages } from "./rows.ts";
import { resolveMark, versionsOf } from "./versions.ts";

const panes: readonly (readonly [Pane, string])[] = [
  ["branches", "Branches"],
  ["log", "Log"],
  ["model", "Model’s view"],
  ["files", "Files"],
  ["info", "Info"],
];

interface BranchScreenProps {
  readonly scope: BranchScope;
  readonly place: Place;
  readonly isPaneOpen: boolean;
  readonly agents: readonly Agent[];
  readonly onAgent: (agentId: string) => void;
}

export function BranchScreen({ scope, place, isPaneOpen, agents, onAgent }: BranchScreenProps) {
  const client = useClient();
  const logged = useLoggedBranch(client, scope);
  const { use, log, version } = logged;
  const wanted = useDeferredValue(place.at);
  const isPast = place.at !== undefined;
  const rows = useRows(logged, wanted);
  const versions = useMemo(() => versionsOf(use.branches, scope, rows.messages), [use.branches, scope, rows.messages]);
  const marked = useMemo(() => resolveMark(place.message, rows.messages), [place.message, rows.messages]);
  const shown = useMemo(
    (): readonly Row[] => (versions.atEnd && !isPast ? [...rows.rows, { kind: "tip", key: "tip" }] : rows.rows),
    [rows.rows, versions, isPast],
  );
  useVisit(scope, place, use.error);
  const actions = useBranchActions(scope, place, logged, rows.view, versions);
  const goTo = (at: number | undefined) => {
    const { at: _at, ...now } = place;
    go(at === undefined ? now : { ...now, at }, { replace: true });
  };
  useBranchKeys(rows.rows, place, marked, actions);
  const byId = useMemo(() => new Map(use.branches.map((branch) => [branch.id, branch])), [use.branches]);
  const branch = byId.get(scope.branchId);
  return (
    <RowProvider value={actions}>
      <main className={isPast ? "main past" : "main"} aria-label="Conversation">
        <header className="head">
          <h1>{use.branch?.name ?? scope.branchId}</h1>
          {use.branch?.tags.map((tag) => (
            <span key={tag} className="tag">
              {tag}
            </span>
          ))}
          {branch && <span className="quiet one-line">{originOf(branch, byId)}</span>}
          {agents.length > 1 && (
            <select
              aria-label="Agent of the next turn"
              value={scope.agentId}
              onChange={(event) => onAgent(event.target.value)}
            >
              {agents.map(({ id, name }) => (
                <option key={id} value={id}>
                  {name ?? id}
                </option>
              ))}
            </select>
          )}
          <Status use={use} />
        </header>
        {isPast && <PastBanner at={place.at!} length={log.length} actions={actions} goTo={goTo} />}
        {use.error && <p className="failure bar-failure">{sentenceOf(use.error)}</p>}
        {place.with === undefined ? (
          <Conversation rows={shown} openTurnId={rows.openTurnId} marked={marked} isPast={isPast} />
        ) : (
          <Compare
            scope={scope}
            other={place.with}
            nameOf={(id) => branchName(byId.get(id) ?? { id })}
            onClose={() => actions.compareWith(undefined)}
            onShow={actions.showBranch}
          />
        )}
        {!isPast && place.with === undefined && (
          <div className="bottom">
            {use.interactions
              .filter(({ kind }) => kind !== "client-tool")
              .map((question) => (
                <QuestionCard key={question.id} question={question} />
              ))}
            <Composer
              key={`${scope.sessionId}/${scope.branchId}`}
              use={use}
              onEditLast={() => actions.startEdit(lastUserId(rows.rows))}
            />
          </div>
        )}
        <TimeStrip log={log} version={version} at={place.at} onGo={goTo} />
      </main>
      {actions.isComparing && (
        <Palette
          label="Compare with"
          commands={use.branches
            .filter(({ id }) => id !== scope.branchId)
            .map((other) => ({ label: branchName(other), run: () => actions.compareWith(other.id) }))}
          onClose={() => actions.startCompare(false)}
        />
      )}
      {isPaneOpen && (
        <SidePane
          scope={scope}
          place={place}
          logged={logged}
          view={rows.view}
          marked={marked}
          goTo={goTo}
          actions={actions}
        />
      )}
    </RowProvider>
  );
}

/** Notes that somebody looked at the branch; a session whose branch is gone opens at "main". */
function useVisit({ sessionId, branchId }: BranchScope, place: Place, error: Error | undefined): void {
  const isGone = isRemoteError(error, "branch_not_found");
  const isAsked = place.branch !== undefined;
  useEffect(() => {
    if (!isGone) return noteVisit(sessionId, branchId);
    forgetVisit(sessionId, branchId);
    if (!isAsked && branchId !== "main") go(branchPlace(sessionId, "main"), { replace: true });
  }, [sessionId, branchId, isGone, isAsked]);
}

interface PastBannerProps {
  readonly at: number;
  readonly length: number;
  readonly actions: ReturnType<typeof useBranchActions>;
  readonly goTo: (at: number | undefined) => void;
}

function PastBanner({ at, length, actions, goTo }: PastBannerProps) {
  return (
    <div className="banner" role="status">
      <span>
        The conversation as it was at {at} of {length}. Nothing here can be changed.
      </span>
      <Button onClick={() => void actions.forkAt(at)}>Fork from here</Button>
      <Button onClick={() => void actions.revertTo(at)}>Revert to here</Button>
      <Button kind="plain" onClick={() => goTo(undefined)}>
        Back to now
      </Button>
    </div>
  );
}

/** The rows of the position that is shown; before the log is there, those of the newest messages. */
function useRows({ use, log, version }: LoggedBranch, at: number | undefined) {
  const maker = useRef<Rows>(null);
  maker.current ??= new Rows();
  const rows = maker.current;
  const isLogged = log.isLoaded && log.length >= use.seq;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the view is another one when the log has grown
  const view = useMemo(() => log.at(at ?? log.length), [log, version, at]);
  const messages = useMemo(
    () => (at !== undefined || isLogged ? visibleMessages(view) : use.messages),
    [at, isLogged, view, use.messages],
  );
  const said = useMemo(
    () => rows.make(messages, 0, isLogged || at !== undefined ? view : undefined),
    [rows, messages, isLogged, at, view],
  );
  const all = useMemo((): readonly Row[] => {
    if (at !== undefined || use.streaming.length === 0) return said;
    return [...said, ...use.streaming.map((draft): Row => ({ kind: "draft", key: `draft-${draft.messageId}`, draft }))];
  }, [said, at, use.streaming]);
  const openTurnId = at === undefined ? use.run?.turnId : view.open?.id;
  return { rows: all, messages, view, openTurnId };
}

const statusWords = {
  loading: "reading …",
  idle: "quiet",
  running: "working",
  asking: "waits for you",
  open: "was cut off",
} as const;

function Status({ use }: { use: LoggedBranch["use"] }) {
  const { status, connection } = use;
  const isLost = connection.state !== "live" && connection.state !== "replaying";
  return (
    <span className="status" role="status" data-status={status}>
      <span className={`dot ${status}`} aria-hidden="true" />
      {statusWords[status]}
      {isLost && connection.state !== "idle" && <span className="bad"> · {connection.state}</span>}
    </span>
  );
}

interface SidePaneProps {
  readonly scope: BranchScope;
  readonly place: Place;
  readonly logged: LoggedBranch;
  readonly view: View;
  readonly marked: string | undefined;
  readonly goTo: (at: number | undefined) => void;
  readonly actions: ReturnType<typeof useBranchActions>;
}

function SidePane({ scope, place, logged: { use, log, version }, view, marked, goTo, actions }: SidePaneProps) {
  const pane = place.pane ?? "branches";
  const seq = Math.min(place.at ?? log.length, log.length);
  return (
    <aside className="pane" aria-label="About this branch">
      <div className="tabs" role="tablist">
        {panes.map(([id, label]) => (
          <button
            key={id}
            type="button"
            role="tab"
            aria-selected={pane === id}
            onClick={() => go({ ...place, pane: id }, { replace: true })}
          >
            {label}
          </button>
        ))}
      </div>
      <div className="pane-body" role="tabpanel">
        {pane === "branches" && (
          <BranchesPane
            scope={scope}
            branches={use.branches}
            onShow={actions.showBranch}
            onCompare={actions.compareWith}
            onChange={use.refresh}
          />
        )}
        {pane === "log" && <LogPane log={log} version={version} seq={seq} onGo={goTo} />}
        {pane === "model" && (
          <ModelPane handle={use.handle} replies={repliesOf(view)} chosen={marked} onChoose={actions.showPrompt} />
        )}
        {pane === "files" && <FilesPane handle={use.handle} />}
        {pane === "info" && <InfoPane handle={use.handle} view={view} onGo={goTo} />}
      </div>
    </aside>
  );
}

function lastUserId(rows: readonly Row[]): string | undefined {
  return rows.findLast((row) => row.kind === "message" && row.message.role === "user")?.key;
}

function repliesOf(view: View): readonly string[] {
  return visibleMessages(view)
    .filter(({ role }) => role === "assistant")
    .map(({ id }) => id);
}
