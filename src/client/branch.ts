// The handle of a branch, from far away: everything that can be asked of it and done to it.

import type { Clock } from "../base/clock.ts";
import type { JsonObject } from "../base/json.ts";
import type { BoughEvent } from "../events/index.ts";
import type { EventsQuery } from "../wire/schemas.ts";
import type {
  BranchBody,
  BranchSummary,
  CheckpointBody,
  ContentBody,
  ContextUsageBody,
  InputAnswer,
  InterruptAnswer,
  MessagesBody,
  ResponseAnswer,
  RunBody,
  StateBody,
} from "../wire/types.ts";
import { allBranches } from "./branch-pages.ts";
import type { Backoff } from "./connection.ts";
import { type Http, path } from "./http.ts";
import { LiveBranch, type WatchOptions } from "./live-branch.ts";
import { collectEvents, completeState, type EventPage, lookAgain } from "./pages.ts";
import type { BranchPatch, BranchScope, ForkRequest, Input, RevertRequest, SubmitOptions } from "./requests.ts";
import { type SubscribeOptions, Subscription } from "./subscription.ts";
import { ToolRunner } from "./tools.ts";
import type { Transport } from "./transport.ts";

export interface BranchContext {
  readonly http: Http;
  readonly clock: Clock;
  readonly random: () => number;
  readonly newId: () => string;
  readonly backoff: Backoff;
  readonly silenceMs: number;
  transport(scopePath: string): Transport;
}

/** One branch of a session, as an agent of the server works on it. */
export class BranchHandle {
  readonly scope: Required<BranchScope>;
  readonly #context: BranchContext;
  /** With the agent, and without. */
  readonly #ofAgent: string;
  readonly #path: string;

  /** Use `open` of a client. */
  constructor(context: BranchContext, { agentId, sessionId, branchId = "main" }: BranchScope) {
    this.scope = { agentId, sessionId, branchId };
    this.#context = context;
    this.#path = path`/sessions/${sessionId}/branches/${branchId}`;
    this.#ofAgent = path`/agents/${agentId}` + this.#path;
  }

  /** Messages, cursor, interactions and active run of one moment. Its `before` leads to the messages before them. */
  state({ last = 200, signal }: { last?: number; signal?: AbortSignal } = {}): Promise<StateBody> {
    const more = signal ? { signal } : {};
    return lookAgain(async () => {
      const state = await this.#http.json<StateBody>("GET", `${this.#ofAgent}/state`, { query: { last }, ...more });
      return completeState(
        state,
        (query) => this.#http.json("GET", `${this.#path}/messages`, { query, ...more }),
        last,
      );
    });
  }

  /** A page of messages, oldest first: those before the message named, by default the newest. */
  messages({ last, before }: { last?: number; before?: string } = {}): Promise<MessagesBody> {
    return this.#http.json("GET", `${this.#path}/messages`, { query: { last, before } });
  }

  /**
   * The branch's kept events after a position: 1,000 unless `limit` says otherwise. Its `after` says that there are more. With
   * `turnId`, `runId` or `type`, only those.
   */
  events(page: EventsQuery = {}): Promise<EventPage> {
    return collectEvents((query) => this.#http.json("GET", `${this.#path}/events`, { query }), page);
  }

  /** Every kept event after the cursor, each once and in order, and then what happens, across lost connections. */
  subscribe(options: SubscribeOptions): Subscription {
    const { transport, clock, random, backoff, silenceMs } = this.#context;
    return new Subscription({ ...options, transport: transport(this.#ofAgent), clock, random, backoff, silenceMs });
  }

  /** The same as an iteration: asking for the next event says that the one before is done. */
  async *listen(options: { after?: number; signal?: AbortSignal } = {}): AsyncGenerator<BoughEvent> {
    let give: (event: BoughEvent | undefined) => void = () => {};
    let done: () => void = () => {};
    const offer = () =>
      new Promise<BoughEvent | undefined>((resolve) => {
        give = resolve;
      });
    let next = offer();
    const onEvent = (event: BoughEvent) =>
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

  /** The branch as a picture that is kept up to date, for a screen. */
  watch(options: WatchOptions = {}): LiveBranch {
    const { clock, random, backoff } = this.#context;
    const respond = (id: string, answer: JsonObject) => this.respond(id, answer);
    const { tools: given = {} } = options;
    const tools = typeof given === "function" ? given : () => given;
    return new LiveBranch(
      this,
      options,
      (onError) => new ToolRunner({ tools, respond, onError, clock, random, backoff }),
    );
  }

  /**
   * Starts a run; without input, resumes what was left open. It is told once, however often the answer is lost on the way.
   */
  submit(input?: Input, { key, signal, ...options }: SubmitOptions = {}): Promise<InputAnswer> {
    const isSaid = input !== undefined && input.length > 0;
    return this.#http.json("POST", `${this.#ofAgent}/inputs`, {
      body: { ...(isSaid && { input }), ...options },
      headers: { "idempotency-key": key ?? this.#context.newId() },
      // Whether a resumption was ours can't be told afterwards.
      isRepeatable: isSaid,
      ...(signal && { signal }),
    });
  }

  /** Interrupts the run at work; with `runId`, that one and no other. */
  interrupt({ runId, reason }: { runId?: string; reason?: string } = {}): Promise<InterruptAnswer> {
    const body = { ...(runId !== undefined && { expectedRunId: runId }), ...(reason !== undefined && { reason }) };
    return this.#http.json("POST", `${this.#ofAgent}/interrupt`, { body, isRepeatable: runId !== undefined });
  }

  /** Answers an open interaction of any kind; `interaction_closed` for whoever comes late. */
  respond(interactionId: string, answer: JsonObject): Promise<ResponseAnswer> {
    return this.#http.json("POST", `${this.#ofAgent}/responses`, { body: { interactionId, answer } });
  }

  /** The runs of the agent on the branch, or of any agent, oldest first. */
  async runs({ agent }: { agent?: "own" | "any" } = {}): Promise<readonly RunBody[]> {
    return (await this.#http.json<{ runs: RunBody[] }>("GET", `${this.#ofAgent}/runs`, { query: { agent } })).runs;
  }

  /** The run that is active on the branch, whichever agent's. */
  activeRun(): Promise<RunBody | null> {
    return this.#http.json("GET", `${this.#ofAgent}/runs/active`);
  }

  /** One run; `run_not_found` when there is none. */
  getRun(runId: string): Promise<RunBody> {
    return this.#http.json("GET", this.#ofAgent + path`/runs/${runId}`);
  }

  /** How much a model would be sent now. */
  contextUsage(): Promise<ContextUsageBody> {
    return this.#http.json("GET", `${this.#ofAgent}/context-usage`);
  }

  /** The branch with its place in the tree. */
  get(): Promise<BranchBody> {
    return this.#http.json("GET", this.#path);
  }

  /** Name, description and tags are replaced (`null` removes), metadata is merged. */
  update(patch: BranchPatch): Promise<BranchBody> {
    return this.#http.json("PATCH", this.#path, { body: patch });
  }

  /** Deletes the branch; with `recursive`, its forks too, where the server allows it (`allowRecursiveDelete`). */
  delete({ recursive }: { recursive?: boolean } = {}): Promise<void> {
    return this.#http.json("DELETE", this.#path, { query: { recursive } });
  }

  /** A new branch that shares this one up to a message, by default the latest. */
  fork({ from, ...request }: ForkRequest = {}): Promise<BranchBody> {
    const body = { ...(from !== undefined && { fromMessageId: from }), ...request };
    return this.#http.json("POST", `${this.#ofAgent}/fork`, { body });
  }

  /** The branch and those forked at the same point, the source first. */
  siblings(): Promise<readonly BranchSummary[]> {
    return allBranches(this.#http, `${this.#path}/siblings`);
  }

  /** Takes the branch back to a message, an index or a position; the log keeps what happened. */
  revert({ to, ...request }: RevertRequest): Promise<BranchBody> {
    const body = { ...(to !== undefined && { toMessageId: to }), ...request };
    return this.#http.json("POST", `${this.#path}/revert`, { body });
  }

  /** Checkpoints, newest first. */
  async listCheckpoints(): Promise<readonly CheckpointBody[]> {
    const body = await this.#http.json<{ checkpoints: CheckpointBody[] }>("GET", `${this.#path}/checkpoints`);
    return body.checkpoints;
  }

  /** Names the branch's newest position. */
  saveCheckpoint(request: { checkpointId?: string; label?: string } = {}): Promise<CheckpointBody> {
    return this.#http.json("POST", `${this.#path}/checkpoints`, { body: request });
  }

  /** The branch as it was at a checkpoint. */
  loadCheckpoint(checkpointId: string): Promise<StateBody & { readonly checkpoint: CheckpointBody }> {
    const route = this.#path + path`/checkpoints/${checkpointId}`;
    return this.#http
      .json<StateBody & { readonly checkpoint: CheckpointBody }>("GET", route)
      .then((state) => completeState(state, (query) => this.#http.json("GET", route, { query })));
  }

  /** A new branch from a checkpoint. */
  forkCheckpoint(checkpointId: string, request: { newBranchId?: string } = {}): Promise<BranchBody> {
    return this.#http.json("POST", this.#ofAgent + path`/checkpoints/${checkpointId}/fork`, { body: request });
  }

  /** Takes the branch back to a checkpoint. */
  revertCheckpoint(checkpointId: string): Promise<BranchBody> {
    return this.#http.json("POST", this.#path + path`/checkpoints/${checkpointId}/revert`, { body: {} });
  }

  /** Stores bytes and returns the reference that messages use. */
  putContent(bytes: Uint8Array | Blob, { name }: { name?: string } = {}): Promise<ContentBody> {
    const headers = {
      "content-type": "application/octet-stream",
      ...(name !== undefined && { "x-filename": encodeURIComponent(name) }),
    };
    return this.#http.json("POST", `${this.#path}/content`, { bytes, headers });
  }

  /** Content the branch sees: its own and its ancestors'. */
  async listContent(): Promise<readonly ContentBody[]> {
    return (await this.#http.json<{ content: ContentBody[] }>("GET", `${this.#path}/content`)).content;
  }

  /** The bytes of content the branch sees. */
  getContent(contentId: string): Promise<Blob> {
    return this.#http.bytes(this.#path + path`/content/${contentId}`);
  }

  /** Removes the branch's own reference. */
  deleteContent(contentId: string): Promise<void> {
    return this.#http.json("DELETE", this.#path + path`/content/${contentId}`);
  }

  get #http(): Http {
    return this.#context.http;
  }
}
