// Handles: one branch and one session as objects, the same near and far. An agent implements them in its own process, a
// client over HTTP. They are declared here because this room is the highest one that both import and that runs in a
// browser: a function written against a handle needs neither Node nor a server.

import type { BoughError } from "../base/errors.ts";
import type { Json, JsonObject } from "../base/json.ts";
import type {
  BoughEvent,
  Fact,
  Interaction,
  InteractionAnswer,
  InteractionKind,
  Message,
  UnknownFact,
} from "../events/index.ts";
import type {
  CompactionCheck,
  CompactionCheckRequest,
  CompactionInfo,
  CompactRequest,
  ContextUsage,
} from "./compaction.ts";
import type { PromptDiff, SentPrompt } from "./prompt.ts";
import type { QueuedInputBody } from "./queue.ts";
import type { EditInputBody, EventsQuery, InputBody } from "./schemas.ts";
import type { TaskBody } from "./tasks.ts";
import type {
  BranchBody,
  BranchSummary,
  CheckpointBody,
  ContentBody,
  InputAnswer,
  InterruptAnswer,
  MessagesBody,
  OpenInteractionBody,
  PermissionBody,
  ResponseAnswer,
  SessionBody,
  SignalAnswer,
  StateBody,
} from "./types.ts";

/** What a branch is called. */
export interface BranchDetails {
  readonly name?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly metadata?: JsonObject;
}

/** Changes to what a branch is called: `null` removes, metadata is merged. */
export interface BranchPatch {
  readonly name?: string | null;
  readonly description?: string | null;
  readonly tags?: readonly string[] | null;
  readonly metadata?: JsonObject;
}

/** Where a fork begins and what it is called. */
export interface ForkRequest extends BranchDetails {
  /** The id of the last message the fork shares (default: the latest). */
  readonly from?: string;
  /** Instead: how many messages it shares (index 4 keeps messages 0 to 3). */
  readonly fromMessageIndex?: number;
  /** Instead: the last position of the log it shares. */
  readonly fromSeq?: number;
  readonly newBranchId?: string;
  /** Branch-scoped state: as of the fork point (default), as it is now, or none. */
  readonly state?: "fork-point" | "current" | "none";
  /**
   * Compactions in what the fork shares: they come along (`"inherit"`, the default), or the fork sees the original words
   * (`"none"`). With options, the fork begins with a compaction of its own, hard by default; the source stays as it is.
   */
  readonly compaction?: "inherit" | "none" | CompactRequest;
}

/** The point that a branch goes back to. */
export interface RevertPoint {
  /** The last message that stays. */
  readonly to?: string;
  /** Instead: how many messages stay. */
  readonly toMessageIndex?: number;
  /** Instead: the position of the log to go back to. */
  readonly toSeq?: number;
  /** The branch's newest position as the caller knows it; `sequence_conflict` if the branch has moved on. */
  readonly expectedSeq?: number;
}

/** A user's input: a text, the parts of one message, or messages. Without input, a run resumes the open turn. */
export type Input = NonNullable<InputBody["input"]>;

/** Options of one run that JSON can express, so that they mean the same near and far. */
export interface BranchRunOptions extends Pick<InputBody, "config" | "output" | "metadata"> {
  /** Data for the agent's tools and hooks, checked by the agent's `context` schema. */
  readonly context?: unknown;
  /**
   * What the run does with a question to a person. `"wait"` (the default of `run`) keeps the run active until the answer
   * comes, `"park"` (the default of `submit`) ends the run and resumes the turn when the answer comes.
   */
  readonly questions?: "wait" | "park";
  /** Interrupts the run. */
  readonly signal?: AbortSignal;
}

/** A run that was started and is not waited for. */
export interface SubmittedRun {
  readonly runId: string;
  /** The id of the first message it adds. */
  readonly inputId: string;
}

/** Tokens used by a turn. */
interface TokenUsage {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly totalTokens?: number;
  readonly cachedInputTokens?: number;
  readonly reasoningTokens?: number;
}

interface OutcomeBase {
  readonly runId: string;
  readonly turnId: string;
  readonly sessionId: string;
  readonly branchId: string;
  /** Why the run ended: the model's finish reason, a limit, the reason of an interruption. */
  readonly reason?: string;
  /** The final answer; of a run that did not complete, the text so far. */
  readonly text: string;
  /** The turn's messages, the input included. */
  readonly messages: readonly Message[];
  readonly iterations: number;
  readonly usage: TokenUsage;
}

/** How a run ended; `status` tells what else is known. */
export type RunOutcome =
  | (OutcomeBase & { readonly status: "completed"; readonly output?: unknown })
  | (OutcomeBase & { readonly status: "interrupted" })
  | (OutcomeBase & { readonly status: "failed"; readonly error: BoughError })
  | (OutcomeBase & { readonly status: "parked"; readonly interactions: readonly Interaction[] });

/** A run that was started through a handle. It goes on whether or not its events are read. */
export interface BranchRun<Event = BoughEvent> extends AsyncIterable<Event> {
  /** How the run ended; rejects only when it could not begin. */
  readonly result: Promise<RunOutcome>;
  /** The text of the answer as the model writes it. Reads the run's events, which can be read once. */
  readonly textStream: AsyncIterable<string>;
  /** The final answer; rejects when the run failed, was interrupted or was parked. */
  text(): Promise<string>;
  /** Stops the run; resolves when the turn is closed. */
  interrupt(reason?: string): Promise<void>;
  /** Answers one of the run's questions. */
  respond(interactionId: string, answer: InteractionAnswer): Promise<void>;
}

/** A run on a branch that was forked for it. */
export interface ForkedRun<Event = BoughEvent> {
  readonly branch: BranchHandle<Event>;
  readonly run: BranchRun<Event>;
}

/** A turn that `undo` reverted. */
export interface UndoneTurn {
  readonly turnId: string;
  /** Its messages, the input first. */
  readonly messages: readonly Message[];
  /** The position of the log before: a fork there (`fromSeq`) brings the turn back. */
  readonly seq: number;
}

/** What the branch is called on which `redo` brings something back. */
export interface RedoRequest extends BranchDetails {
  readonly newBranchId?: string;
}

/** A page of events: an array that also tells whether the log goes on after it. */
export interface BranchEvents extends Array<Fact | UnknownFact> {
  /** There are further events: pass it as `after`. */
  readonly after?: number;
  /** With `order: "newest"`: there are earlier events; pass it as `before`. */
  readonly before?: number;
}

/** The checkpoints of a branch. */
export interface CheckpointHandle<Event = BoughEvent> {
  /** Checkpoints, newest first. */
  list(): Promise<readonly CheckpointBody[]>;
  /** Names the branch's newest position. */
  save(request?: { checkpointId?: string; label?: string }): Promise<CheckpointBody>;
  /** The branch as it was at a checkpoint. */
  load(checkpointId: string): Promise<StateBody & { readonly checkpoint: CheckpointBody }>;
  /** A new branch that begins at a checkpoint. */
  fork(checkpointId: string, request?: { newBranchId?: string }): Promise<BranchHandle<Event>>;
  /** Takes the branch back to a checkpoint. */
  revert(checkpointId: string): Promise<StateBody["branch"]>;
}

/** Bytes to store: whole, or a stream that is read while it is sent. */
export type Upload = Uint8Array | Blob | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;

/** Options of an upload. */
export interface UploadOptions {
  readonly name?: string;
  /** Ends the upload; nothing of it is kept. */
  readonly signal?: AbortSignal;
  /** Called with the number of bytes sent so far. An upload that is tried again begins at 0. */
  readonly onProgress?: (bytes: number) => void;
}

/** Options of a download. */
export interface DownloadOptions {
  /** The first byte (default 0). */
  readonly from?: number;
  /** The byte after the last one (default: all of them). */
  readonly to?: number;
  /** Ends the download. */
  readonly signal?: AbortSignal;
}

/** The files of a branch. */
export interface ContentHandle {
  /** Stores bytes and returns the reference that messages use. */
  put(bytes: Upload, options?: UploadOptions): Promise<ContentBody>;
  /** Content that the branch sees: its own and its ancestors'. */
  list(): Promise<readonly ContentBody[]>;
  /** The bytes of content that the branch sees. */
  get(contentId: string, options?: DownloadOptions): Promise<Blob>;
  /** The same as a stream, for files that need not be in memory. Resolves when the first byte can be read. */
  stream(contentId: string, options?: DownloadOptions): Promise<ReadableStream<Uint8Array>>;
  /** Removes the branch's own reference; `content_not_found` when it has none. */
  delete(contentId: string): Promise<void>;
}

/**
 * One branch of a session and everything that can be done with it, near and far alike. `Event` is what `run` and `watch` give:
 * Bough's events and those that the program registered.
 */
export interface BranchHandle<Event = BoughEvent> {
  readonly scope: { readonly sessionId: string; readonly branchId: string };
  /** Runs a turn; without input, resumes the open one. */
  run(input?: Input, options?: BranchRunOptions): BranchRun<Event>;
  /**
   * Starts a run and returns as soon as the input is durable; the run goes on by itself. While a turn is open, `ifActive` decides:
   * `run_active` (`"reject"`, the default), the input waits for a turn of its own (`"queue"`), joins the running one (`"steer"`) or
   * takes its place (`"interrupt"`).
   */
  submit(input?: Input, options?: BranchRunOptions & { ifActive?: "reject" | "interrupt" }): Promise<SubmittedRun>;
  submit(input: Input | undefined, options: BranchRunOptions & Pick<InputBody, "ifActive">): Promise<InputAnswer>;
  /** Inputs that wait for a turn, oldest first. */
  queue(): Promise<readonly QueuedInputBody[]>;
  /** Changes what a queued input says, or when it is taken; `input_closed` once it was taken or withdrawn. */
  editInput(inputId: string, edit: EditInputBody): Promise<QueuedInputBody>;
  /** Withdraws a queued input; `input_closed` once it was taken or withdrawn. */
  withdrawInput(inputId: string): Promise<void>;
  /** Background tasks that have not ended, oldest first. */
  tasks(): Promise<readonly TaskBody[]>;
  /** Ends a background task; `task_ended` if it has ended before. */
  cancelTask(taskId: string): Promise<void>;
  /** Interrupts the active run; with `runId`, only that one. */
  interrupt(request?: { runId?: string; reason?: string }): Promise<InterruptAnswer>;
  /** The branch with its place in the tree. */
  get(): Promise<BranchBody>;
  /** Changes name, description and tags (`null` removes) and merges metadata. */
  update(patch: BranchPatch): Promise<BranchBody>;
  /** Deletes the branch; with `recursive`, its forks too. */
  delete(options?: { recursive?: boolean }): Promise<void>;
  /** Messages (with `before`, those of closed turns before that one), cursor, open questions and active run of one moment. */
  state(options?: { last?: number; before?: string }): Promise<StateBody>;
  /** A page of messages, oldest first: those before the message named, by default the newest. */
  messages(options?: { last?: number; before?: string }): Promise<MessagesBody>;
  /** A page of kept events, 1,000 by default; with `turnId`, `runId`, `type` or `types`, only those. */
  events(query?: EventsQuery): Promise<BranchEvents>;
  /** Every kept event after a position (default 0), then kept and live events as they happen. */
  watch(options?: { after?: number; signal?: AbortSignal }): AsyncGenerator<Event, void>;
  /** A new branch that shares this one's log up to a point, by default the latest message. */
  fork(request?: ForkRequest): Promise<BranchHandle<Event>>;
  /** Forks before a user message and runs another input in its place. */
  edit(messageId: string, input: Input, options?: BranchRunOptions): Promise<ForkedRun<Event>>;
  /** Forks behind the input of a message's turn (default: of the last turn) and has it answered again. */
  regenerate(messageId?: string, options?: BranchRunOptions): Promise<ForkedRun<Event>>;
  /** Reverts the last turn. */
  undo(): Promise<UndoneTurn>;
  /** Brings what the newest `undo` or `revert` took away back, on a new branch; this one stays as it is. */
  redo(request?: RedoRequest): Promise<BranchHandle<Event>>;
  /** Takes the branch back to a point; the log keeps what happened. */
  revert(point: RevertPoint): Promise<StateBody["branch"]>;
  /** The branch and those forked at the same point, the source first. */
  siblings(): Promise<readonly BranchSummary[]>;
  /** Replaces older messages with something shorter, for models or (with `retention: "hard"`) also for people. */
  compact(request?: CompactRequest): Promise<CompactionInfo>;
  /** Takes a compaction or a clearing of tool outputs back: the newest, or the one named. */
  uncompact(compactionId?: string): Promise<CompactionInfo>;
  /** The compactions in force and those they replaced, and the clearings in force, newest first. */
  compactions(): Promise<readonly CompactionInfo[]>;
  /** Asks the same questions with a compaction and without it, and compares the answers. */
  checkCompaction(request?: CompactionCheckRequest): Promise<CompactionCheck>;
  /** What the model was sent for a reply, rebuilt from the log and verified by its hash. */
  promptOf(messageId: string): Promise<SentPrompt>;
  /** The first part in which the prompts of two replies differ, the earlier reply first, and what made it. */
  diffPrompts(from: string, to: string): Promise<PromptDiff>;
  /** How full the model's context is, and when runs compact it next. */
  contextUsage(): Promise<ContextUsage>;
  /** Keeps a message verbatim in every compaction from now on. */
  pin(messageId: string): Promise<void>;
  /** Removes a pin. */
  unpin(messageId: string): Promise<void>;
  /** The ids of pinned messages, in their order. */
  pins(): Promise<readonly string[]>;
  /** Questions of the branch that wait for an answer, oldest first. */
  interactions(): Promise<readonly Interaction[]>;
  /** Answers a question; an interaction instead of an id lets the compiler check the answer. */
  respond<Kind extends InteractionKind>(
    interaction: Interaction<Kind>,
    answer: InteractionAnswer<Kind>,
  ): Promise<ResponseAnswer>;
  respond(interactionId: string, answer: InteractionAnswer | JsonObject): Promise<ResponseAnswer>;
  /** Tells an execution of a workflow something by name; the same id counts once. */
  signal(name: string, payload?: Json, options?: { readonly id?: string }): Promise<SignalAnswer>;
  readonly checkpoints: CheckpointHandle<Event>;
  readonly content: ContentHandle;
}

/** One session and everything that can be done with it, near and far alike. */
export interface SessionHandle<Event = BoughEvent> {
  readonly id: string;
  /** `session_not_found` when there is none. */
  get(): Promise<SessionBody>;
  /** Merges metadata; `null` removes a key. */
  update(patch: { readonly metadata: JsonObject }): Promise<SessionBody>;
  /** Deletes the session and everything in it; `run_active` while a run is active. */
  delete(): Promise<void>;
  /** The handle of one of its branches (default `"main"`). */
  branch(branchId?: string): BranchHandle<Event>;
  /** All branches, oldest first. */
  branches(): Promise<readonly BranchSummary[]>;
  /** Creates a root branch. */
  createBranch(details?: BranchDetails & { readonly branchId?: string }): Promise<BranchHandle<Event>>;
  /** Questions of the session that wait for an answer. */
  interactions(): Promise<readonly OpenInteractionBody[]>;
  /** Permissions that were answered with "always". */
  permissions(): Promise<readonly PermissionBody[]>;
  /** Revokes what is remembered for a tool, of one agent or of all; returns how many were revoked. */
  revokePermission(revoked: { readonly agentId?: string; readonly tool: string }): Promise<number>;
}
