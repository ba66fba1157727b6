// LiveBranch: a view of a branch that stays up to date. It owns the picture: the server's state at one position with every event
// after it, folded by the same code that the server uses.
//   LiveBranch-1. The picture shows exactly the kept events up to `seq`, and the messages being streamed beyond them as drafts.
//   LiveBranch-2. A picture is immutable: what changed is a new object, what did not is the same one.
//   LiveBranch-3. It is connected while it has a listener, and sends no requests otherwise.
//   LiveBranch-4. `onEvent` is called once per kept event. What it throws becomes the picture's error; the picture continues.

import { optionKeys } from "../base/options.ts";
import type { BoughEvent, KeptEvent, Message } from "../events/index.ts";
import { fold } from "../projection/fold.ts";
import { type BranchView, emptyView, type TurnRecord } from "../projection/view.ts";
import { type QueuedInputBody, queuedInputBody } from "../wire/queue.ts";
import { type OpenTaskBody, openTaskBody } from "../wire/tasks.ts";
import type { InteractionBody, StateBody } from "../wire/types.ts";
import { type ClientConnection, idleConnection } from "./connection.ts";
import { Drafts, type StreamingMessage } from "./drafts.ts";
import { isRemoteError } from "./errors.ts";
import type { SubscribeOptions, Subscription } from "./subscription.ts";
import type { ClientTools, ToolRunner } from "./tools.ts";

/**
 * `loading`: before the first picture. `idle`: no turn is open. `running`: a run is active. `asking`: the turn waits for an
 * answer. `open`: the turn is open without an active run.
 */
export type BranchStatus = "loading" | "idle" | "running" | "asking" | "open";

/** A snapshot of a branch for a user interface. */
export interface BranchPicture {
  readonly status: BranchStatus;
  /** The position it shows. */
  readonly seq: number;
  /** The newest messages, including those of the open turn. */
  readonly messages: readonly Message[];
  /** Messages that are being streamed. */
  readonly streaming: readonly StreamingMessage[];
  /** The active run of the branch. */
  readonly run: { readonly runId: string; readonly turnId: string } | null;
  /** Questions that wait for an answer, oldest first. */
  readonly interactions: readonly InteractionBody[];
  /** Inputs that wait for a turn, oldest first. */
  readonly queue: readonly QueuedInputBody[];
  /** Background tasks that have not ended, oldest first. */
  readonly tasks: readonly OpenTaskBody[];
  /** How the newest turn ended, if it ended since the first picture. */
  readonly lastTurn?: TurnRecord;
  readonly branch?: StateBody["branch"];
  readonly connection: ClientConnection;
  /** Why the stream ended, or why a client tool's answer was refused. */
  readonly error?: unknown;
}

/** Options of `live`. */
export interface LiveOptions<Event = BoughEvent> {
  /** How many messages of closed turns to load at first (default 200, at most 1000). */
  readonly last?: number;
  /** Tools that run in this process; a function is called for each call, to get the current ones. */
  readonly tools?: ClientTools | (() => ClientTools);
  /** Called with every event of the branch, including your own event types. */
  readonly onEvent?: (event: Event) => void;
}

export const liveKeys = optionKeys<LiveOptions>({ last: true, tools: true, onEvent: true });

/** What a picture is made from: a branch's handle. */
interface Source {
  state(options: { last?: number; signal?: AbortSignal }): Promise<StateBody>;
  subscribe(options: SubscribeOptions): Subscription;
}

const nothing: BranchPicture = {
  status: "loading",
  seq: 0,
  messages: [],
  streaming: [],
  run: null,
  interactions: [],
  queue: [],
  tasks: [],
  connection: idleConnection,
};

/** A view of a branch that stays up to date. */
export class LiveBranch {
  readonly #source: Source;
  readonly #options: LiveOptions;
  readonly #listeners = new Set<() => void>();
  readonly #drafts = new Drafts();
  readonly #tools: ToolRunner;
  #view: BranchView = emptyView();
  #picture: BranchPicture = nothing;
  #subscription: Subscription | undefined;
  /** The newest kept event that `onEvent` was called with, or that the picture began with. */
  #told = 0;

  /** Use `live` of a branch. */
  constructor(source: Source, options: LiveOptions, tools: (onError: (error: unknown) => void) => ToolRunner) {
    this.#source = source;
    this.#options = options;
    this.#tools = tools((error) => this.#show({ error }));
  }

  /** The branch as it is now. */
  get current(): BranchPicture {
    return this.#picture;
  }

  /** Calls the listener after every change. The view is connected while it has a listener (LiveBranch-3). */
  subscribe(listener: () => void): () => void {
    const own = () => listener();
    this.#listeners.add(own);
    this.#subscription ??= this.#start();
    return () => {
      this.#listeners.delete(own);
      // A listener that unsubscribes and subscribes again at once, as React effects do, keeps the connection.
      queueMicrotask(() => this.#listeners.size === 0 && this.#stop());
    };
  }

  #start(): Subscription {
    return this.#source.subscribe({
      after: async (signal) => {
        this.#told = await this.#load(signal);
        return this.#told;
      },
      onEvent: (event) => this.#event(event),
      onSnapshot: (message) => {
        this.#drafts.snapshot(message);
        this.#show({});
      },
      onReady: () => {
        this.#drafts.ready();
        this.#show({});
      },
      onConnection: (connection) => this.#connected(connection),
      // What a handler throws here is that the server can't be asked just now.
      attempts: Number.POSITIVE_INFINITY,
    });
  }

  #stop(): void {
    this.#subscription?.close();
    this.#subscription = undefined;
    this.#tools.close();
    this.#drafts.clear();
  }

  #connected(connection: ClientConnection): void {
    if (connection.state === "replaying") this.#drafts.connected();
    const isOver = connection.state === "failed";
    this.#show({ connection, ...(isOver && { error: connection.error }) });
  }

  /** The state of the server; returns the position it is of. */
  async #load(signal?: AbortSignal): Promise<number> {
    const { last } = this.#options;
    const state = await this.#source.state({ ...(last !== undefined && { last }), ...(signal && { signal }) });
    this.#view = viewOf(state);
    const { branch, activeRun } = state;
    const run = activeRun && { runId: activeRun.runId, turnId: activeRun.turnId };
    // What failed before does not any more.
    const { error: _error, ...before } = this.#picture;
    this.#picture = before;
    this.#show({ branch, run }, true);
    return state.seq;
  }

  async #event(event: BoughEvent): Promise<void> {
    this.#tell(event);
    const isDrawn = this.#drafts.event(event);
    if (event.seq === undefined) {
      const isParked = event.type === "run-end" && event.status === "parked";
      if (isParked) this.#show({ run: null });
      else if (isDrawn) this.#show({});
      return;
    }
    // A picture that was loaded meanwhile shows it already.
    if (event.seq <= this.#view.seq) return;
    if (looksBack(event as KeptEvent) || !this.#fold(event as KeptEvent)) await this.#reload();
    else this.#show({ ...runAfter(event as KeptEvent) }, true);
  }

  /** LiveBranch-4: an event whose handling failed comes again. */
  #tell(event: BoughEvent): void {
    const { onEvent } = this.#options;
    if (!onEvent || (event.seq !== undefined && event.seq <= this.#told)) return;
    this.#told = event.seq ?? this.#told;
    try {
      onEvent(event);
    } catch (error) {
      this.#show({ error });
    }
  }

  /** False when the picture does not hold what the event is about: a turn that waits to be saved, say. */
  #fold(event: KeptEvent): boolean {
    try {
      // What only models see has no place in the picture, whose messages don't begin with the branch's first.
      if (event.type.startsWith("history.")) this.#view.seq = event.seq;
      else fold(this.#view, event);
      return true;
    } catch {
      return false;
    }
  }

  /** A refusal is the end; that the server can't be reached is not. */
  async #reload(): Promise<void> {
    try {
      await this.#load();
    } catch (error) {
      if (!isRemoteError(error) || error.retryable) throw error;
      this.#subscription?.close();
      this.#show({ error });
    }
  }

  /** LiveBranch-2. */
  #show(change: Partial<BranchPicture>, isFolded = false): void {
    const before = this.#picture;
    const facts = isFolded ? factsOf(this.#view) : {};
    const next = { ...before, ...change, ...facts, streaming: this.#drafts.list };
    this.#picture = { ...next, status: statusOf(next, this.#view) };
    if (isFolded) this.#tools.see(this.#picture.interactions);
    for (const listener of this.#listeners) listener();
  }
}

/** What can't be folded into a picture that begins in the middle: it is asked for again. */
function looksBack(event: KeptEvent): boolean {
  if (event.type === "history.compacted") return event.retention === "hard";
  return event.type === "branch.reverted" || event.type === "branch.forked" || event.type === "history.restored";
}

function viewOf(state: StateBody): BranchView {
  const { seq, branch, messages, openTurn, interactions, queue, tasks } = state;
  const open = openTurn && { ...openTurn, from: seq, runs: [], messages: [...openTurn.messages], set: {} };
  const header = { metadata: branch.metadata };
  const held = [...messages];
  const picture = { seq, header, messages: held, shown: held, window: held };
  const going = tasks.map(({ taskId: id, ...task }) => ({ ...task, id, seq }));
  return { ...emptyView(), ...picture, open: open ?? null, interactions: [...interactions], queue, tasks: going };
}

function factsOf(
  view: BranchView,
): Pick<BranchPicture, "seq" | "messages" | "interactions" | "queue" | "tasks" | "lastTurn"> {
  const { seq, staged, open, interactions, queue, tasks, turns } = view;
  const unclosed = [...staged, ...(open ? [open] : [])].flatMap(({ messages }) => messages);
  const lastTurn = turns.at(-1);
  return {
    seq,
    messages: [...view.messages, ...unclosed],
    interactions: interactions.slice(),
    queue: queue.map(queuedInputBody),
    tasks: tasks.map(openTaskBody),
    ...(lastTurn && { lastTurn }),
  };
}

function runAfter(event: KeptEvent): Partial<BranchPicture> {
  if (event.type === "turn.started" || event.type === "turn.resumed") {
    const { runId } = event;
    const turnId = event.type === "turn.started" ? event.id : event.turnId;
    return { run: runId === undefined ? null : { runId, turnId } };
  }
  return ends.has(event.type) ? { run: null } : {};
}

const ends = new Set<string>(["turn.committed", "turn.staged", "turn.ended", "turn.discarded"]);

function statusOf({ branch, run, interactions }: BranchPicture, { open }: BranchView): BranchStatus {
  if (!branch) return "loading";
  if (!open) return "idle";
  if (interactions.some(({ turnId }) => turnId === open.id)) return "asking";
  return run ? "running" : "open";
}
