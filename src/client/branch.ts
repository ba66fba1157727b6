// The handle of a branch over HTTP.

import type { Clock } from "../base/clock.ts";
import type { Json, JsonObject } from "../base/json.ts";
import { checkOptions } from "../base/options.ts";
import type { BoughEvent, Interaction, InteractionAnswer, InteractionKind } from "../events/index.ts";
import type {
  CompactionCheck,
  CompactionCheckRequest,
  CompactionInfo,
  CompactRequest,
  ContextUsage,
} from "../wire/compaction.ts";
import type {
  BranchEvents,
  BranchHandle,
  BranchPatch,
  BranchRun,
  BranchRunOptions,
  CheckpointHandle,
  ContentHandle,
  ForkedRun,
  ForkRequest,
  Input,
  RedoRequest,
  RevertPoint,
  SubmittedRun,
  UndoneTurn,
} from "../wire/handle.ts";
import type { PromptDiff, SentPrompt } from "../wire/prompt.ts";
import type { QueuedInputBody } from "../wire/queue.ts";
import { editMessage, redoOnFork, regenerateTurn, undoTurn } from "../wire/revise.ts";
import type { EditInputBody, EventsQuery } from "../wire/schemas.ts";
import type { TaskBody } from "../wire/tasks.ts";
import type {
  BranchBody,
  BranchSummary,
  CheckpointBody,
  InputAnswer,
  InterruptAnswer,
  MessagesBody,
  ResponseAnswer,
  RunBody,
  SignalAnswer,
  StateBody,
} from "../wire/types.ts";
import { allPages } from "./all-pages.ts";
import type { Backoff } from "./connection.ts";
import { remoteContent } from "./content.ts";
import { type Http, path } from "./http.ts";
import { LiveBranch, type LiveOptions, liveKeys } from "./live-branch.ts";
import { collectEvents, completeState, lookAgain } from "./pages.ts";
import type { SubmitOptions } from "./requests.ts";
import { RemoteRun } from "./run.ts";
import { type SubscribeOptions, Subscription, subscribeKeys } from "./subscription.ts";
import { ToolRunner } from "./tools.ts";
import type { LiveQuery, Transport } from "./transport.ts";

export interface BranchContext {
  readonly http: Http;
  readonly clock: Clock;
  readonly random: () => number;
  readonly newId: () => string;
  readonly backoff: Backoff;
  readonly silenceMs: number;
  transport(scopePath: string, wanted: LiveQuery): Transport;
  /** Shows an event that the program defined under its own type. */
  present<E extends { readonly type: string }>(event: E): E;
}

/** One branch of a session of a server, and the agent that works on it. */
export class RemoteBranch<Event = BoughEvent> implements BranchHandle<Event> {
  readonly scope: { readonly agentId: string; readonly sessionId: string; readonly branchId: string };
  readonly checkpoints: CheckpointHandle<Event>;
  readonly content: ContentHandle;
  readonly #context: BranchContext;
  /** With the agent, and without. */
  readonly #ofAgent: string;
  readonly #path: string;

  /** Use `branch` of a client. */
  constructor(context: BranchContext, scope: RemoteBranch["scope"]) {
    const { agentId, sessionId, branchId } = scope;
    this.scope = { agentId, sessionId, branchId };
    this.#context = context;
    this.#path = path`/sessions/${sessionId}/branches/${branchId}`;
    this.#ofAgent = path`/agents/${agentId}` + this.#path;
    this.checkpoints = this.#checkpoints();
    this.content = remoteContent(context.http, this.#path);
  }

  /** Runs a turn on the server and follows it; without input, resumes the open one. */
  run(input?: Input, options: BranchRunOptions = {}): BranchRun<Event> {
    // A run follows what it has in common with all others; its events are those that `subscribe` presents.
    const branch = this as unknown as RemoteBranch;
    return new RemoteRun(branch, this.#context.clock, input, options) as BranchRun<unknown> as BranchRun<Event>;
  }

  /** A consistent snapshot: messages, cursor, interactions and active run. Pass its `before` to `messages` for older ones. */
  state({
    last = 200,
    signal,
    ...rest
  }: {
    last?: number;
    before?: string;
    signal?: AbortSignal;
  } = {}): Promise<StateBody> {
    const more = signal ? { signal } : {};
    return lookAgain(async () => {
      const asked = { query: { last, ...rest }, ...more };
      const state = await this.#http.json<StateBody>("GET", `${this.#ofAgent}/state`, asked);
      return completeState(
        state,
        (query) => this.#http.json("GET", `${this.#path}/messages`, { query, ...more }),
        last,
      );
    });
  }

  /** A page of messages, oldest first: those before the message named, by default the newest. */
  messages(options: { last?: number; before?: string } = {}): Promise<MessagesBody> {
    return this.#http.json("GET", `${this.#path}/messages`, { query: options });
  }

  /**
   * A page of kept events after a position, up to `limit` (default 1,000). If the page has `after`, pass it to get the next
   * one. `turnId`, `runId` and `type` filter.
   */
  async events(page: EventsQuery = {}): Promise<BranchEvents> {
    const events = await collectEvents((query) => this.#http.json("GET", `${this.#path}/events`, { query }), page);
    for (const [i, event] of events.entries()) events[i] = this.#context.present(event);
    return events;
  }

  /** Delivers every kept event after the cursor, each once and in order, then live events too; reconnects by itself. */
  subscribe(options: SubscribeOptions<Event>): Subscription {
    checkOptions("The options of subscribe", options, subscribeKeys);
    return this.#follow({ ...options, onEvent: (event) => options.onEvent(this.#present(event)) });
  }

  /** The same as an async iterator: requesting the next event acknowledges the previous one. */
  async *watch(options: { after?: number; signal?: AbortSignal } = {}): AsyncGenerator<Event, void> {
    let give: (event: Event | undefined) => void = () => {};
    let done: () => void = () => {};
    const offer = () =>
      new Promise<Event | undefined>((resolve) => {
        give = resolve;
      });
    let next = offer();
    const onEvent = (event: Event) =>
      new Promise<void>((resolve) => {
        done = resolve;
        give(event);
      });
    const subscription = this.subscribe({ ...options, onEvent });
    void subscription.ended.then(() => give(undefined));
    try {
      for (let event = await next; event; event = await next) {
        yield event;
        next = offer();
        if (subscription.connection.state === "closed") return;
        done();
      }
      const { state, error } = await subscription.ended;
      if (state === "failed") throw error;
    } finally {
      subscription.close();
      done();
    }
  }

  /** A view of the branch that stays up to date, for a user interface. */
  live(options: LiveOptions<Event> = {}): LiveBranch {
    checkOptions("The options of live", options, liveKeys);
    const { clock, random, backoff } = this.#context;
    const respond = (id: string, answer: JsonObject) => this.respond(id, answer);
    const { tools: given = {} } = options;
    const tools = typeof given === "function" ? given : () => given;
    const { onEvent, ...rest } = options;
    const present = onEvent && ((event: BoughEvent) => onEvent(this.#present(event)));
    return new LiveBranch(
      { state: (wanted) => this.state(wanted), subscribe: (wanted) => this.#follow(wanted) },
      { ...rest, ...(present && { onEvent: present }) },
      (onError) => new ToolRunner({ tools, respond, onError, clock, random, backoff }),
    );
  }

  /**
   * Starts a run; without input, resumes the open turn. Retried with an idempotency key, so it starts at most one run.
   */
  submit(input?: Input, options?: SubmitOptions & { ifActive?: "reject" | "interrupt" }): Promise<SubmittedRun>;
  submit(input: Input | undefined, options: SubmitOptions): Promise<InputAnswer>;
  submit(input?: Input, { key, signal, ...options }: SubmitOptions = {}): Promise<InputAnswer | SubmittedRun> {
    const isSaid = input !== undefined && input.length > 0;
    return this.#http.json("POST", `${this.#ofAgent}/inputs`, {
      body: { ...(isSaid && { input }), ...options },
      headers: { "idempotency-key": key ?? this.#context.newId() },
      // Afterwards there is no way to tell whether this request resumed the turn.
      isRepeatable: isSaid,
      ...(signal && { signal }),
    });
  }

  /** Inputs that wait for a turn, oldest first. */
  async queue(): Promise<readonly QueuedInputBody[]> {
    return (await this.#http.json<{ inputs: QueuedInputBody[] }>("GET", `${this.#path}/queue`)).inputs;
  }

  /** Changes what a queued input says, or when it is taken; `input_closed` once it was taken or withdrawn. */
  editInput(inputId: string, edit: EditInputBody): Promise<QueuedInputBody> {
    return this.#http.json("PATCH", this.#path + path`/queue/${inputId}`, { body: edit });
  }

  /** Withdraws a queued input; `input_closed` once it was taken or withdrawn. */
  withdrawInput(inputId: string): Promise<void> {
    return this.#http.json("DELETE", this.#path + path`/queue/${inputId}`, { isRepeatable: false });
  }

  /** Background tasks that have not ended, oldest first. */
  async tasks(): Promise<readonly TaskBody[]> {
    return (await this.#http.json<{ tasks: TaskBody[] }>("GET", `${this.#path}/tasks`)).tasks;
  }

  /** Ends a background task; `task_ended` if it has ended before. */
  cancelTask(taskId: string): Promise<void> {
    return this.#http.json("DELETE", this.#ofAgent + path`/tasks/${taskId}`, { isRepeatable: false });
  }

  /** Interrupts the active run; with `runId`, only that one. */
  interrupt({ runId, ...request }: { runId?: string; reason?: string } = {}): Promise<InterruptAnswer> {
    const body = { ...(runId !== undefined && { expectedRunId: runId }), ...request };
    return this.#http.json("POST", `${this.#ofAgent}/interrupt`, { body, isRepeatable: runId !== undefined });
  }

  /** Answers a question; `interaction_closed` if it was already answered or has expired. */
  respond<Kind extends InteractionKind>(
    interaction: Interaction<Kind>,
    answer: InteractionAnswer<Kind>,
  ): Promise<ResponseAnswer>;
  respond(interactionId: string, answer: InteractionAnswer | JsonObject): Promise<ResponseAnswer>;
  respond(interaction: string | Interaction, answer: InteractionAnswer | JsonObject): Promise<ResponseAnswer> {
    const interactionId = typeof interaction === "string" ? interaction : interaction.id;
    return this.#http.json("POST", `${this.#ofAgent}/responses`, { body: { interactionId, answer } });
  }

  /** Tells an execution of a workflow something by name; the same id counts once. */
  signal(
    name: string,
    payload?: Json,
    { id = this.#context.newId() }: { readonly id?: string } = {},
  ): Promise<SignalAnswer> {
    const body = { name, id, ...(payload !== undefined && { payload }) };
    return this.#http.json("POST", `${this.#ofAgent}/signals`, { body });
  }

  /** Questions of the branch that wait for an answer, oldest first. */
  async interactions(): Promise<readonly Interaction[]> {
    return (await this.state({ last: 1 })).interactions;
  }

  /** Runs on the branch, oldest first: those of the handle's agent, or of any agent. */
  runs(options: { agent?: "own" | "any" } = {}): Promise<readonly RunBody[]> {
    return allPages(this.#http, `${this.#ofAgent}/runs`, "runs", options);
  }

  /** The active run of the branch, of any agent. */
  activeRun(): Promise<RunBody | null> {
    return this.#http.json("GET", `${this.#ofAgent}/runs/active`);
  }

  /** One run; `run_not_found` if it does not exist. */
  getRun(runId: string): Promise<RunBody> {
    return this.#http.json("GET", this.#ofAgent + path`/runs/${runId}`);
  }

  /** The branch with its place in the tree. */
  get(): Promise<BranchBody> {
    return this.#http.json("GET", this.#path);
  }

  /** Replaces name, description and tags (`null` removes) and merges metadata. */
  update(patch: BranchPatch): Promise<BranchBody> {
    return this.#http.json("PATCH", this.#path, { body: patch });
  }

  /** Deletes the branch; with `recursive`, its forks too, where the server allows it (`allowRecursiveDelete`). */
  delete(options: { recursive?: boolean } = {}): Promise<void> {
    return this.#http.json("DELETE", this.#path, { query: options });
  }

  /** Creates a branch that shares this one up to a message (default: the latest). */
  async fork({ from, ...request }: ForkRequest = {}): Promise<RemoteBranch<Event>> {
    const body = { ...(from !== undefined && { fromMessageId: from }), ...request };
    const { id } = await this.#http.json<BranchBody>("POST", `${this.#ofAgent}/fork`, { body, asksModel: true });
    return this.#other(id);
  }

  /** Forks before a user message and runs another input in its place. */
  edit(messageId: string, input: Input, options?: BranchRunOptions): Promise<ForkedRun<Event>> {
    return editMessage(this, messageId, input, options);
  }

  /** Forks behind the input of a message's turn (default: of the last turn) and has it answered again. */
  regenerate(messageId?: string, options?: BranchRunOptions): Promise<ForkedRun<Event>> {
    return regenerateTurn(this, messageId, options);
  }

  /** Reverts the last turn. */
  undo(): Promise<UndoneTurn> {
    return undoTurn(this);
  }

  /** Brings what the newest `undo` or `revert` took away back, on a new branch; this one stays as it is. */
  redo(request?: RedoRequest): Promise<RemoteBranch<Event>> {
    return redoOnFork(this, request) as Promise<RemoteBranch<Event>>;
  }

  /** The branch and those forked at the same point, the source first. */
  siblings(): Promise<readonly BranchSummary[]> {
    return allPages(this.#http, `${this.#path}/siblings`, "branches");
  }

  /** Reverts the branch to a message, an index or a position. The log keeps its history. */
  revert({ to, ...request }: RevertPoint): Promise<StateBody["branch"]> {
    const body = { ...(to !== undefined && { toMessageId: to }), ...request };
    return this.#http.json("POST", `${this.#path}/revert`, { body });
  }

  /** Replaces older messages with something shorter, for models or (with `retention: "hard"`) also for people. */
  compact(request: CompactRequest = {}): Promise<CompactionInfo> {
    return this.#http.json("POST", `${this.#ofAgent}/compact`, { body: request, asksModel: true });
  }

  /** Takes a compaction or a clearing of tool outputs back: the newest, or the one named. */
  async uncompact(compactionId?: string): Promise<CompactionInfo> {
    const body = compactionId === undefined ? {} : { compactionId };
    const { compaction } = await this.#http.json<{ compaction: CompactionInfo }>("POST", `${this.#path}/uncompact`, {
      ...{ body, isRepeatable: false },
    });
    return compaction;
  }

  /** The compactions in force and those they replaced, and the clearings in force, newest first. */
  compactions(): Promise<readonly CompactionInfo[]> {
    return allPages(this.#http, `${this.#path}/compactions`, "compactions");
  }

  /** Asks the same questions with a compaction and without it, and compares the answers. */
  checkCompaction(request: CompactionCheckRequest = {}): Promise<CompactionCheck> {
    return this.#http.json("POST", `${this.#ofAgent}/check-compaction`, { body: request, asksModel: true });
  }

  /** What the model was sent for a reply, rebuilt from the log and verified by its hash. */
  promptOf(messageId: string): Promise<SentPrompt> {
    return this.#http.json("GET", this.#path + path`/messages/${messageId}/prompt`);
  }

  /** The first part in which the prompts of two replies differ, the earlier reply first, and what made it. */
  diffPrompts(from: string, to: string): Promise<PromptDiff> {
    return this.#http.json("GET", this.#path + path`/messages/${from}/prompt/diff/${to}`);
  }

  /** How full the model's context is, and when runs compact it next. */
  contextUsage(): Promise<ContextUsage> {
    return this.#http.json("GET", `${this.#ofAgent}/context-usage`);
  }

  /** Keeps a message verbatim in every compaction from now on. */
  pin(messageId: string): Promise<void> {
    return this.#http.json("PUT", this.#path + path`/pins/${messageId}`);
  }

  /** Removes a pin. */
  unpin(messageId: string): Promise<void> {
    return this.#http.json("DELETE", this.#path + path`/pins/${messageId}`);
  }

  /** The ids of pinned messages, in their order. */
  async pins(): Promise<readonly string[]> {
    return (await this.#http.json<{ pins: string[] }>("GET", `${this.#path}/pins`)).pins;
  }

  /** The event under the type that the program gave it: `Event` is what the definitions of the context make of one. */
  #present(event: BoughEvent): Event {
    return this.#context.present(event) as Event;
  }

  /** The events as the server sends them: what is folded is not presented. */
  #follow(options: SubscribeOptions): Subscription {
    const { transport, clock, random, backoff, silenceMs } = this.#context;
    // What has no handler need not be sent.
    const wanted: LiveQuery = options.onChild ? {} : { events: "own" };
    return new Subscription({
      ...options,
      transport: transport(this.#ofAgent, wanted),
      clock,
      random,
      backoff,
      silenceMs,
    });
  }

  #checkpoints(): CheckpointHandle<Event> {
    const http = this.#http;
    const all = `${this.#path}/checkpoints`;
    return {
      list: () => allPages(http, all, "checkpoints"),
      save: (request = {}) => http.json("POST", all, { body: request }),
      async load(checkpointId) {
        const route = all + path`/${checkpointId}`;
        const state = await http.json<StateBody & { readonly checkpoint: CheckpointBody }>("GET", route);
        return completeState(state, (query) => http.json("GET", route, { query }));
      },
      fork: async (checkpointId, request = {}) => {
        const route = this.#ofAgent + path`/checkpoints/${checkpointId}/fork`;
        return this.#other((await http.json<BranchBody>("POST", route, { body: request })).id);
      },
      revert: (checkpointId) => http.json("POST", all + path`/${checkpointId}/revert`, { body: {} }),
    };
  }

  #other(branchId: string): RemoteBranch<Event> {
    return new RemoteBranch(this.#context, { ...this.scope, branchId });
  }

  get #http(): Http {
    return this.#context.http;
  }
}
