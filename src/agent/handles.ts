// The handles of an agent's branches and sessions in its own process. They hold no state: every call asks the agent.

import { BoughError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import type { Json, JsonObject } from "../base/json.ts";
import { anything, checkOptions, type OptionCheck, object, optionTable, text, whole } from "../base/options.ts";
import type { BoughEvent, Interaction, InteractionAnswer, OwnEventTable } from "../events/index.ts";
import { presentOwn } from "../events/present-own.ts";
import type { BranchRef } from "../log/store.ts";
import {
  type InterruptOutcome,
  type InterruptRequest,
  messagesOf,
  type Run,
  type RunInput,
  type RunOptions,
} from "../runs/index.ts";
import {
  branchBody,
  branchInfoBody,
  branchSummary,
  messagesBefore,
  messagesBody,
  momentOf,
  sessionBody,
  stateBody,
} from "../sessions/bodies.ts";
import { readBranch } from "../sessions/branches.ts";
import { type Context, readScope } from "../sessions/context.ts";
import type { Checkpoint, EventQuery, Scope, Sessions } from "../sessions/index.ts";
import { mainBranch } from "../sessions/session.ts";
import type { Signal } from "../sessions/signals.ts";
import { checkedBySchema } from "../tools/index.ts";
import {
  type BranchHandle,
  type BranchPatch,
  type BranchRun,
  type BranchRunOptions,
  type CheckpointHandle,
  type CompactionCheckRequest,
  type CompactRequest,
  type ContentHandle,
  type ContextUsage,
  type EditInputBody,
  type EventsQuery,
  editMessage,
  type ForkedRun,
  type ForkRequest,
  type Input,
  type InputAnswer,
  queuedInputBody,
  type RedoRequest,
  type RevertPoint,
  redoOnFork,
  regenerateTurn,
  type SessionHandle,
  type SubmittedRun,
  undoTurn,
} from "../wire/index.ts";
import { localContent } from "./content-handle.ts";
import { LocalRun, takenUp } from "./local-run.ts";
import type { IfActive, InputOptions, Submitted } from "./submitter.ts";
import { watchBranch } from "./watch-branch.ts";

/** What a handle needs of its agent. */
export interface HandleHost extends Sessions {
  run(input?: RunInput, options?: RunOptions): Run;
  submit(input: RunInput | undefined, options: InputOptions): Promise<Submitted>;
  respond(scope: Scope, interactionId: string, answer: JsonObject, options?: RunOptions): Promise<Run | undefined>;
  signal(scope: Scope, signal: Signal, options?: RunOptions): Promise<Run | undefined>;
  interrupt(scope: Scope, request?: InterruptRequest): Promise<InterruptOutcome>;
  contextUsage(scope: Scope): Promise<ContextUsage>;
  cancelTask(scope: Scope, taskId: string): Promise<void>;
  subscribe(type: "*", handler: (event: BoughEvent) => unknown): () => void;
}

/** What handles are made from. */
export interface HandleSource {
  readonly agent: HandleHost;
  readonly context: Context;
  /** The event types that the program defined. */
  readonly events: OwnEventTable;
}

const count: OptionCheck = { fits: (value) => Number.isInteger(value) && Number(value) >= 1, wanted: "an integer ≥ 1" };
const messagesTable = optionTable<{ last?: number; before?: string }>({ last: count, before: text });
const watchTable = optionTable<{ after?: number; signal?: AbortSignal }>({ after: whole, signal: anything });
const sessionPatchTable = optionTable<{ metadata: JsonObject }>({ metadata: object });

/** How many messages a page has unless `last` says otherwise, the same as over HTTP. */
const defaultLast = 200;

export class LocalBranch implements BranchHandle {
  readonly scope: BranchRef;
  readonly checkpoints: CheckpointHandle;
  readonly content: ContentHandle;
  readonly #source: HandleSource;
  readonly #agent: HandleHost;
  readonly #context: Context;

  /** A scope without a branch means the branch "main", as it does over HTTP. */
  constructor(source: HandleSource, scope: Scope) {
    const { sessionId, branchId = mainBranch } = readScope(scope);
    this.scope = { sessionId, branchId };
    this.#source = source;
    this.#agent = source.agent;
    this.#context = source.context;
    this.checkpoints = this.#checkpoints();
    this.content = localContent(source.agent, this.scope);
  }

  run(input?: Input, options: BranchRunOptions = {}): BranchRun {
    return new LocalRun(this.#agent.run(input as RunInput | undefined, this.#runOptions("wait", options)));
  }

  submit(input?: Input, options?: BranchRunOptions & { ifActive?: "reject" | "interrupt" }): Promise<SubmittedRun>;
  submit(input: Input | undefined, options: BranchRunOptions & { ifActive?: IfActive }): Promise<InputAnswer>;
  async submit(
    input?: Input,
    { ifActive, ...options }: BranchRunOptions & { ifActive?: IfActive } = {},
  ): Promise<InputAnswer | SubmittedRun> {
    const said = input === undefined || input.length === 0 ? undefined : (input as RunInput);
    const where = { ...this.#runOptions("park", options), ...(ifActive && { ifActive }) };
    const { inputId, status, run } = await this.#agent.submit(said, where);
    run?.discardEvents();
    return { inputId, status, ...(run && { runId: run.runId }) };
  }

  async queue() {
    return (await this.#agent.listQueue(this.scope)).map(queuedInputBody);
  }

  async editInput(inputId: string, { input, when }: EditInputBody) {
    const messages = input === undefined ? undefined : messagesOf(input as RunInput);
    const edit = { ...(messages && { input: messages }), ...(when && { when }) };
    return queuedInputBody(await this.#agent.editInput(this.scope, inputId, edit));
  }

  async withdrawInput(inputId: string): Promise<void> {
    await this.#agent.withdrawInput(this.scope, inputId);
  }

  tasks() {
    return this.#agent.listTasks(this.scope);
  }

  cancelTask(taskId: string): Promise<void> {
    return this.#agent.cancelTask(this.scope, taskId);
  }

  async interrupt(request: { runId?: string; reason?: string } = {}) {
    const { outcome, runId } = await this.#agent.interrupt(this.scope, request);
    return { status: outcome, ...(runId !== undefined && { runId }) };
  }

  async get() {
    return branchBody(await this.#agent.getBranch(this.scope));
  }

  async update(patch: BranchPatch) {
    await this.#agent.updateBranch(this.scope, patch);
    return this.get();
  }

  async delete(options: { recursive?: boolean } = {}): Promise<void> {
    await this.#agent.deleteBranch(this.scope, options);
  }

  async state(options: { last?: number; before?: string } = {}) {
    checkOptions("The options of state", options, messagesTable);
    const { last = defaultLast, before } = options;
    return stateBody(await momentOf(this.#context, this.scope), last, before);
  }

  async messages(options: { last?: number; before?: string } = {}) {
    checkOptions("The options of messages", options, messagesTable);
    const { last = defaultLast, before } = options;
    const branch = await readBranch(this.#context, this.scope);
    return messagesBody(messagesBefore(this.scope, branch, before), last);
  }

  events({ order, ...query }: EventsQuery = {}) {
    const range = { ...query, ...(order === "newest" && { reverse: true }) } as EventQuery;
    return this.#agent.events(this.scope, range);
  }

  watch(options: { after?: number; signal?: AbortSignal } = {}): AsyncGenerator<BoughEvent, void> {
    checkOptions("The options of watch", options, watchTable);
    const subscribe = (handler: (event: BoughEvent) => Promise<void>) => this.#agent.subscribe("*", handler);
    const present = (event: BoughEvent) => presentOwn(this.#source.events, event);
    return watchBranch({ context: this.#context, ref: this.scope, subscribe, present }, options);
  }

  async fork(request: ForkRequest = {}): Promise<BranchHandle> {
    return this.#other((await this.#agent.forkBranch(this.scope, request)).id);
  }

  edit(messageId: string, input: Input, options?: BranchRunOptions): Promise<ForkedRun> {
    return editMessage(this, messageId, input, options);
  }

  regenerate(messageId?: string, options?: BranchRunOptions): Promise<ForkedRun> {
    return regenerateTurn(this, messageId, options);
  }

  undo() {
    return undoTurn(this);
  }

  redo(request?: RedoRequest): Promise<BranchHandle> {
    return redoOnFork(this, request);
  }

  async revert(point: RevertPoint) {
    const { to, toMessageIndex, toSeq } = point;
    if ([to, toMessageIndex, toSeq].every((each) => each === undefined)) {
      throw new BoughError("invalid_argument", "revert needs a point: to, toMessageIndex or toSeq.");
    }
    return branchInfoBody(await this.#agent.revertBranch(this.scope, point));
  }

  compact(request: CompactRequest = {}) {
    return this.#agent.compact(this.scope, request);
  }

  uncompact(compactionId?: string) {
    return this.#agent.uncompact(this.scope, compactionId);
  }

  checkCompaction(request: CompactionCheckRequest = {}) {
    return this.#agent.checkCompaction(this.scope, request);
  }

  promptOf(messageId: string) {
    return this.#agent.promptOf(this.scope, messageId);
  }

  diffPrompts(from: string, to: string) {
    return this.#agent.diffPrompts(this.scope, from, to);
  }

  compactions() {
    return this.#agent.listCompactions(this.scope);
  }

  contextUsage() {
    return this.#agent.contextUsage(this.scope);
  }

  pin(messageId: string) {
    return this.#agent.pin(this.scope, messageId);
  }

  unpin(messageId: string) {
    return this.#agent.unpin(this.scope, messageId);
  }

  pins() {
    return this.#agent.listPins(this.scope);
  }

  async siblings() {
    return (await this.#agent.siblings(this.scope)).map(branchSummary);
  }

  async interactions(): Promise<readonly Interaction[]> {
    return (await readBranch(this.#context, this.scope)).interactions;
  }

  async respond(interaction: string | Interaction, answer: InteractionAnswer | JsonObject) {
    const interactionId = typeof interaction === "string" ? interaction : interaction.id;
    const run = await this.#agent.respond(this.scope, interactionId, answer as JsonObject, { questions: "park" });
    const runId = run && (await takenUp(run));
    return { interactionId, ...(runId !== undefined && { runId }) };
  }

  async signal(name: string, payload?: Json, { id = this.#context.ids.next() }: { readonly id?: string } = {}) {
    const run = await this.#agent.signal(this.scope, { name, id, ...(payload !== undefined && { payload }) });
    const runId = run && (await takenUp(run));
    return { signalId: id, ...(runId !== undefined && { runId }) };
  }

  #checkpoints(): CheckpointHandle {
    const { scope } = this;
    const agent = this.#agent;
    const find = async (checkpointId: string): Promise<Checkpoint> => {
      const found = (await agent.listCheckpoints(scope)).find(({ id }) => id === checkpointId);
      if (found) return found;
      const sentence = `Branch "${scope.branchId}" has no checkpoint "${checkpointId}".`;
      throw new BoughError("checkpoint_not_found", sentence, { data: { ...scope, checkpointId } });
    };
    return {
      list: () => agent.listCheckpoints(scope),
      save: ({ checkpointId: id, label } = {}) =>
        agent.saveCheckpoint(scope, { ...(id !== undefined && { id }), ...(label !== undefined && { label }) }),
      async load(checkpointId) {
        const checkpoint = await find(checkpointId);
        const branch = await agent.loadBranch(scope, { at: checkpoint.seq });
        return { ...stateBody({ branch, active: null }, Number.POSITIVE_INFINITY), checkpoint };
      },
      fork: async (checkpointId, request = {}) => this.fork({ fromSeq: (await find(checkpointId)).seq, ...request }),
      revert: async (checkpointId) => branchInfoBody(await agent.revertBranch(scope, { checkpointId })),
    };
  }

  #other(branchId: string): LocalBranch {
    return new LocalBranch(this.#source, { ...this.scope, branchId });
  }

  #runOptions(questions: "wait" | "park", { output, ...options }: BranchRunOptions): RunOptions {
    const checked = output && { output: { ...output, schema: checkedBySchema(output.schema) } };
    return { questions, ...options, ...checked, ...this.scope } as RunOptions;
  }
}

export class LocalSession implements SessionHandle {
  readonly id: string;
  readonly #source: HandleSource;
  readonly #agent: HandleHost;

  constructor(source: HandleSource, id: string) {
    checkId(id, "session");
    this.id = id;
    this.#source = source;
    this.#agent = source.agent;
  }

  async get() {
    return sessionBody(await this.#agent.getSession(this.id));
  }

  async update(patch: { readonly metadata: JsonObject }) {
    checkOptions("The patch of update", patch, sessionPatchTable);
    return sessionBody(await this.#agent.updateSession(this.id, patch));
  }

  delete(): Promise<void> {
    return this.#agent.deleteSession(this.id);
  }

  branch(branchId: string = mainBranch): BranchHandle {
    return new LocalBranch(this.#source, { sessionId: this.id, branchId });
  }

  async branches() {
    return (await this.#agent.listBranches(this.id)).map(branchSummary);
  }

  async createBranch(details: Parameters<SessionHandle["createBranch"]>[0] = {}): Promise<BranchHandle> {
    return this.branch((await this.#agent.createBranch(this.id, details)).id);
  }

  async interactions() {
    const found = [];
    let cursor: string | undefined;
    do {
      const page = await this.#agent.listInteractions({ sessionId: this.id, ...(cursor !== undefined && { cursor }) });
      found.push(...page.interactions);
      cursor = page.cursor;
    } while (cursor !== undefined);
    return found;
  }

  permissions() {
    return this.#agent.listPermissions(this.id);
  }

  revokePermission(revoked: { readonly agentId?: string; readonly tool: string }): Promise<number> {
    return this.#agent.revokePermission(this.id, revoked);
  }
}
