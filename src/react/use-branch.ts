import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import type { JsonObject } from "../base/json.ts";
import type {
  BranchHandle,
  BranchPicture,
  BranchScope,
  Client,
  ClientTools,
  ForkRequest,
  Input,
  SubmitOptions,
} from "../client/index.ts";
import { BranchTree } from "../projection/tree.ts";
import type {
  BranchBody,
  BranchSummary,
  InputAnswer,
  InteractionBody,
  InterruptAnswer,
  ResponseAnswer,
} from "../wire/types.ts";

export interface UseBranchOptions {
  /** How many messages of closed turns to begin with (default 200, at most 1000). */
  readonly last?: number;
  /** Tools that run in this page; those of the latest render are used. */
  readonly tools?: ClientTools;
}

/** A question that waits for an answer, with the ways to give one. */
export interface Question extends InteractionBody {
  /** Any answer that its kind takes. */
  answer(answer: JsonObject): Promise<ResponseAnswer>;
  /** Yes, to a permission or a continuation; `always` for the tool in the whole session. */
  approve(options?: { always?: boolean }): Promise<ResponseAnswer>;
  /** No, to a permission or a continuation. */
  deny(options?: { always?: boolean; reason?: string }): Promise<ResponseAnswer>;
}

/** A branch on a screen: what it is now, and what can be done to it. */
export interface BranchUse extends Omit<BranchPicture, "interactions"> {
  /** The text that is being said just now. */
  readonly streamingText: string;
  readonly interactions: readonly Question[];
  /** All branches of the session, oldest first. */
  readonly branches: readonly BranchSummary[];
  /** This branch and those forked at the same point, the source first. */
  readonly siblings: readonly BranchSummary[];
  /** Why there is nothing more to come, or why the last thing that was done was refused. */
  readonly error?: Error;
  /** Starts a run; without input, resumes what was left open. */
  submit(input?: Input, options?: SubmitOptions): Promise<InputAnswer>;
  /** Interrupts the run that is shown, and no later one. */
  stop(reason?: string): Promise<InterruptAnswer>;
  /** A new branch that shares this one up to a message, by default the latest. */
  fork(request?: ForkRequest): Promise<BranchBody>;
  /** Asks again which branches there are: what others fork is not told by itself. */
  refresh(): Promise<void>;
  /** The handle, for everything else. */
  readonly handle: BranchHandle;
}

/**
 * A branch, kept up to date as long as the component is there.
 *
 * @example
 * const { messages, streamingText, status, submit, stop } = useBranch(client, { agentId: "helper", sessionId });
 */
export function useBranch(client: Client, scope: BranchScope, options: UseBranchOptions = {}): BranchUse {
  const { agentId, sessionId, branchId = "main" } = scope;
  const { last } = options;
  const tools = useLatest(options.tools ?? {});
  const handle = useMemo(() => client.open({ agentId, sessionId, branchId }), [client, agentId, sessionId, branchId]);
  const live = useMemo(
    () => handle.watch({ tools: () => tools.current, ...(last !== undefined && { last }) }),
    [handle, last, tools],
  );
  const picture = useSyncExternalStore(
    useCallback((listener) => live.subscribe(listener), [live]),
    () => live.current,
    () => live.current,
  );
  const { failure, attempt, fail } = useAttempts(handle);
  const { branches, refresh } = useBranches(client, sessionId, fail, picture.lastTurn?.id);
  const actions = useMemo(() => actionsOf(handle, attempt, refresh), [handle, attempt, refresh]);
  const { run } = picture;
  const stop = useCallback((reason?: string) => actions.stop(run?.runId, reason), [actions, run?.runId]);
  const interactions = useMemo(
    () => picture.interactions.map((each) => questionOf(each, actions.respond)),
    [picture.interactions, actions],
  );
  const siblings = useMemo(() => siblingsOf(branches, branchId), [branches, branchId]);
  const { error: broken, ...drawn } = picture;
  const error = asError(broken ?? failure);
  return {
    ...drawn,
    ...(error !== undefined && { error }),
    streamingText: picture.streaming.map(({ text }) => text).join(""),
    interactions,
    branches,
    siblings,
    submit: actions.submit,
    fork: actions.fork,
    stop,
    refresh,
    handle,
  };
}

/** The value of the latest render, for what happens later. */
function useLatest<T>(value: T): { readonly current: T } {
  const latest = useRef(value);
  useEffect(() => {
    latest.current = value;
  });
  return latest;
}

/** What was thrown and is no error, such as by a client tool, is quoted by one. */
function asError(thrown: unknown): Error | undefined {
  if (thrown === undefined || thrown instanceof Error) return thrown;
  return new Error(String(thrown), { cause: thrown });
}

type Attempt = <T>(work: Promise<T>) => Promise<T>;

/** Keeps how the last thing that was done failed. Whoever awaits it is told as well; whoever doesn't has `error`. */
function useAttempts(handle: BranchHandle) {
  const [failed, setFailed] = useState<{ handle: BranchHandle; error: unknown }>();
  const fail = useCallback((error: unknown) => setFailed({ handle, error }), [handle]);
  const attempt = useCallback<Attempt>(
    (work) => {
      work.then(() => setFailed(undefined), fail);
      return work;
    },
    [fail],
  );
  // A failure on another branch says nothing about this one.
  return { failure: failed?.handle === handle ? failed.error : undefined, attempt, fail };
}

/** The session's branches; a turn that ended changes what is told of them. */
function useBranches(client: Client, sessionId: string, fail: (error: unknown) => void, lastTurnId?: string) {
  const [known, setKnown] = useState<{ sessionId: string; branches: readonly BranchSummary[] }>();
  const refresh = useCallback(async () => {
    const branches = await client.listBranches(sessionId);
    setKnown({ sessionId, branches });
  }, [client, sessionId]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: looked at again whenever a turn has ended
  useEffect(() => {
    refresh().catch(fail);
  }, [refresh, fail, lastTurnId]);
  return { branches: known?.sessionId === sessionId ? known.branches : none, refresh };
}

const none: readonly BranchSummary[] = [];

function actionsOf(handle: BranchHandle, attempt: Attempt, refresh: () => Promise<void>) {
  return {
    submit: (input?: Input, options?: SubmitOptions) => attempt(handle.submit(input, options)),
    stop: (runId: string | undefined, reason: string | undefined) =>
      attempt(handle.interrupt({ ...(runId !== undefined && { runId }), ...(reason !== undefined && { reason }) })),
    respond: (id: string, answer: JsonObject) => attempt(handle.respond(id, answer)),
    fork: (request?: ForkRequest) =>
      attempt(
        handle.fork(request).then(async (branch) => {
          await refresh();
          return branch;
        }),
      ),
  };
}

function questionOf(
  interaction: InteractionBody,
  respond: (id: string, answer: JsonObject) => Promise<ResponseAnswer>,
): Question {
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

function siblingsOf(branches: readonly BranchSummary[], branchId: string): readonly BranchSummary[] {
  const byId = new Map(branches.map((branch) => [branch.id, branch]));
  const nodes = branches.map(({ id, forkedFrom, forkedAtMessageId }) => ({
    id,
    ...(forkedFrom !== undefined && { parentId: forkedFrom }),
    ...(forkedAtMessageId !== undefined && { forkMessageId: forkedAtMessageId }),
  }));
  return new BranchTree(nodes).siblingsOf(branchId).flatMap((id) => byId.get(id) ?? []);
}
