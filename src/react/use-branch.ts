import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import type { JsonObject } from "../base/json.ts";
import type {
  BranchPicture,
  BranchScope,
  Client,
  ClientTools,
  ForkRequest,
  Input,
  RemoteBranch,
  SubmitOptions,
} from "../client/index.ts";
import type { BoughEvent } from "../events/index.ts";
import { type Parting, partings } from "../projection/index.ts";
import type { Change } from "../wire/changes.ts";
import type { RedoRequest, UndoneTurn, Upload } from "../wire/handle.ts";
import { planEdit, planRegeneration, type Revision } from "../wire/revise.ts";
import type {
  BranchSummary,
  ContentBody,
  InputAnswer,
  InteractionBody,
  InterruptAnswer,
  ResponseAnswer,
} from "../wire/types.ts";
import { useChanges } from "./use-changes.ts";
import { type PendingUpload, type UploadRequest, useUploads } from "./use-uploads.ts";

/** Options of `useBranch`. */
export interface UseBranchOptions<Event = BoughEvent> {
  /** How many messages of closed turns to load at first (default 200, at most 1000). */
  readonly last?: number;
  /** Tools that run in this page. The latest render's tools are used. */
  readonly tools?: ClientTools;
  /**
   * Reloads the list of branches when anybody forks, renames, reverts or deletes one (default false). Takes one more connection; without
   * it, the list is reloaded when a turn of this branch has ended and after the hook's own actions.
   */
  readonly followBranches?: boolean;
  /** Called with every event of the branch; that of the latest render is used. */
  readonly onEvent?: (event: Event) => void;
}

/** An open question, with functions to answer it. */
export type PendingInteraction = InteractionBody & {
  /** Answers with a value that fits the question's kind. */
  answer(answer: JsonObject): Promise<ResponseAnswer>;
  /** Approves a permission or a continuation; with `always`, the tool is allowed in the whole session. */
  approve(options?: { always?: boolean }): Promise<ResponseAnswer>;
  /** Denies a permission or a continuation. */
  deny(options?: { always?: boolean; reason?: string }): Promise<ResponseAnswer>;
};

/** The state of a branch, and the actions on it. */
export interface BranchUse<Event = BoughEvent> extends Omit<BranchPicture, "interactions"> {
  /** The text that is being streamed. */
  readonly streamingText: string;
  readonly interactions: readonly PendingInteraction[];
  /** All branches of the session, oldest first. */
  readonly branches: readonly BranchSummary[];
  /** This branch and those forked at the same point, starting with the branch they were forked from. */
  readonly siblings: readonly BranchSummary[];
  /** Why the stream ended, or why the last action failed. */
  readonly error?: Error;
  /** Starts a run; without input, resumes the open turn. */
  submit(input?: Input, options?: SubmitOptions): Promise<InputAnswer>;
  /** Interrupts the run that is shown, never a later one. */
  stop(reason?: string): Promise<InterruptAnswer>;
  /** Forks the branch after a message (default: the latest). */
  fork(request?: ForkRequest): Promise<RemoteBranch<Event>>;
  /** The places where the messages have other versions, on other branches: `‹2/3›`. */
  readonly partings: readonly Parting[];
  /** Forks before a user message and submits another input in its place; resolves with the new branch. */
  edit(messageId: string, input: Input, options?: SubmitOptions): Promise<RemoteBranch<Event>>;
  /** Forks behind the input of a message's turn (default: of the last turn) and has it answered again. */
  regenerate(messageId?: string, options?: SubmitOptions): Promise<RemoteBranch<Event>>;
  /** Reverts the last turn. */
  undo(): Promise<UndoneTurn>;
  /** Brings what the newest `undo` took away back, on a new branch. */
  redo(request?: RedoRequest): Promise<RemoteBranch<Event>>;
  /**
   * Stores a file for the branch and shows in `uploads` how far it is. The answer's `uri` is what a message refers to:
   * `{ type: "file", data: uri }`.
   */
  upload(bytes: Upload, request?: UploadRequest): Promise<ContentBody>;
  /** The files on their way. */
  readonly uploads: readonly PendingUpload[];
  /** Reloads the list of branches: forks by other clients are not announced. */
  refresh(): Promise<void>;
  /** The client's handle of the branch, for everything else. */
  readonly handle: RemoteBranch<Event>;
}

/**
 * A branch that stays up to date while the component is mounted.
 *
 * @example
 * const { messages, streamingText, status, submit, stop } = useBranch(client, { agentId: "helper", sessionId });
 */
export function useBranch<Event = BoughEvent>(
  client: Client<Event>,
  scope: BranchScope,
  options: UseBranchOptions<NoInfer<Event>> = {},
): BranchUse<Event> {
  const { agentId, sessionId, branchId = "main" } = typeof scope === "string" ? { sessionId: scope } : scope;
  const { last, followBranches = false } = options;
  const tools = useLatest(options.tools ?? {});
  const onEvent = useLatest(options.onEvent);
  const handle = useMemo(() => client.branch({ agentId, sessionId, branchId }), [client, agentId, sessionId, branchId]);
  const live = useMemo(
    () =>
      handle.live({
        tools: () => tools.current,
        onEvent: (event) => onEvent.current?.(event),
        ...(last !== undefined && { last }),
      }),
    [handle, last, tools, onEvent],
  );
  const picture = useSyncExternalStore(
    useCallback((listener) => live.subscribe(listener), [live]),
    () => live.current,
    () => live.current,
  );
  const { failure, attempt, fail } = useAttempts(handle);
  const { branches, refresh } = useBranches(client, sessionId, fail, picture.lastTurn?.id);
  const refreshSoon = useMemo(() => oneAtATime(refresh, fail), [refresh, fail]);
  useChanges(client, {
    sessionId,
    isEnabled: followBranches,
    onChange: ({ type }) => void (listChanges.has(type) && refreshSoon()),
    onStale: refreshSoon,
  });
  const actions = useMemo(() => actionsOf(handle, attempt, refresh), [handle, attempt, refresh]);
  const { uploads, upload: store } = useUploads(handle);
  const upload = useCallback(
    (bytes: Upload, request?: UploadRequest) => {
      const stored = store(bytes, request);
      // One that was cancelled has not failed.
      stored.catch((error: unknown) => (Object(error).name === "AbortError" ? undefined : fail(error)));
      return stored;
    },
    [store, fail],
  );
  const { run } = picture;
  const stop = useCallback((reason?: string) => actions.stop(run?.runId, reason), [actions, run?.runId]);
  const interactions = useMemo(
    () => picture.interactions.map((each) => questionOf(each, actions.respond)),
    [picture.interactions, actions],
  );
  const siblings = useMemo(() => siblingsOf(branches, branchId), [branches, branchId]);
  const parts = useMemo(() => partings(branches, branchId), [branches, branchId]);
  const { error: broken, ...drawn } = picture;
  const error = asError(broken ?? failure);
  return {
    ...drawn,
    ...(error !== undefined && { error }),
    streamingText: picture.streaming.map(({ text }) => text).join(""),
    interactions,
    branches,
    siblings,
    partings: parts,
    ...ofTurns(actions),
    stop,
    upload,
    uploads,
    refresh,
    handle,
  };
}

/** The value of the latest render, for later callbacks. */
function useLatest<T>(value: T): { readonly current: T } {
  const latest = useRef(value);
  useEffect(() => {
    latest.current = value;
  });
  return latest;
}

/** Wraps a thrown value that is not an `Error`, such as one from a client tool. */
function asError(thrown: unknown): Error | undefined {
  if (thrown === undefined || thrown instanceof Error) return thrown;
  return new Error(String(thrown), { cause: thrown });
}

type Attempt = <T>(work: Promise<T>) => Promise<T>;

/** Stores the failure of the last action in `error`. The action's promise rejects, too. */
function useAttempts<Event>(handle: RemoteBranch<Event>) {
  const [failed, setFailed] = useState<{ handle: RemoteBranch<Event>; error: unknown }>();
  const fail = useCallback((error: unknown) => setFailed({ handle, error }), [handle]);
  const attempt = useCallback<Attempt>(
    (work) => {
      work.then(() => setFailed(undefined), fail);
      return work;
    },
    [fail],
  );
  // A failure on another branch does not concern this one.
  return { failure: failed?.handle === handle ? failed.error : undefined, attempt, fail };
}

/** The session's branches, reloaded when a turn has ended, which changes their data. */
function useBranches(
  client: Pick<Client, "listBranches">,
  sessionId: string,
  fail: (error: unknown) => void,
  lastTurnId?: string,
) {
  const [known, setKnown] = useState<{ sessionId: string; branches: readonly BranchSummary[] }>();
  const refresh = useCallback(async () => {
    const branches = await client.listBranches(sessionId);
    setKnown({ sessionId, branches });
  }, [client, sessionId]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: reloaded whenever a turn has ended
  useEffect(() => {
    refresh().catch(fail);
  }, [refresh, fail, lastTurnId]);
  return { branches: known?.sessionId === sessionId ? known.branches : none, refresh };
}

const none: readonly BranchSummary[] = [];

/** What changes rows of the list. */
const listChanges: ReadonlySet<Change["type"]> = new Set([
  ...(["session-change", "branch-create", "branch-fork", "branch-change", "branch-delete"] as const),
  ...(["run-start", "run-end", "question-open", "question-close", "queue-change"] as const),
]);

/** Calls that come while one is under way become one call after it. */
function oneAtATime(work: () => Promise<void>, onError: (error: unknown) => void): () => void {
  let isUnderWay = false;
  let isDue = false;
  const go = () => {
    isDue = isUnderWay;
    if (isUnderWay) return;
    isUnderWay = true;
    work()
      .catch(onError)
      .finally(() => {
        isUnderWay = false;
        if (isDue) go();
      });
  };
  return go;
}

/** Those of the hook's actions that need nothing of the picture. */
function ofTurns<Event>(actions: ReturnType<typeof actionsOf<Event>>) {
  const { submit, fork, edit, regenerate, undo, redo } = actions;
  return { submit, fork, edit, regenerate, undo, redo };
}

function actionsOf<Event>(handle: RemoteBranch<Event>, attempt: Attempt, refresh: () => Promise<void>) {
  const revise = async (revision: Promise<Revision>, options: SubmitOptions = {}) => {
    const { point, input } = await revision;
    const branch = await handle.fork(point);
    await branch.submit(input, options);
    await refresh();
    return branch;
  };
  const refreshed = async <T>(work: Promise<T>): Promise<T> => {
    const result = await work;
    await refresh();
    return result;
  };
  return {
    edit: (messageId: string, input: Input, options?: SubmitOptions) =>
      attempt(revise(planEdit(handle, messageId, input), options)),
    regenerate: (messageId?: string, options?: SubmitOptions) =>
      attempt(revise(planRegeneration(handle, messageId), options)),
    undo: () => attempt(refreshed(handle.undo())),
    redo: (request?: RedoRequest) => attempt(refreshed(handle.redo(request))),
    submit: (input?: Input, options: SubmitOptions = {}) => attempt<InputAnswer>(handle.submit(input, options)),
    stop: (runId: string | undefined, reason: string | undefined) =>
      attempt(handle.interrupt({ ...(runId !== undefined && { runId }), ...(reason !== undefined && { reason }) })),
    respond: (id: string, answer: JsonObject) => attempt(handle.respond(id, answer)),
    fork: (request?: ForkRequest) => attempt(refreshed(handle.fork(request))),
  };
}

function questionOf(
  interaction: InteractionBody,
  respond: (id: string, answer: JsonObject) => Promise<ResponseAnswer>,
): PendingInteraction {
  const answer = (given: JsonObject) => respond(interaction.id, given);
  const choice = (always: boolean | undefined): JsonObject => (always ? { choice: "always" } : {});
  return {
    ...interaction,
    answer,
    approve: ({ always } = {}) => answer({ approved: true, ...choice(always) }),
    deny: ({ always, reason } = {}) =>
      answer({ approved: false, ...choice(always), ...(reason !== undefined && { reason }) }),
  };
}

/** Siblings as the server defines them: a fork of a hidden branch, which is not in the list, has siblings too. */
function siblingsOf(branches: readonly BranchSummary[], branchId: string): readonly BranchSummary[] {
  const byId = new Map(branches.map((branch) => [branch.id, branch]));
  const branch = byId.get(branchId);
  if (!branch) return [];
  const siblings = [branch];
  // The source of a group comes first and lists the siblings of its own group: the index tells where to stop.
  for (let i = branch.siblingIndex; i > 0; i--) {
    const before = byId.get(siblings[0]!.previousSibling ?? "");
    if (!before) break;
    siblings.unshift(before);
  }
  for (let next = byId.get(branch.nextSibling ?? ""); next; next = byId.get(next.nextSibling ?? ""))
    siblings.push(next);
  return siblings;
}
