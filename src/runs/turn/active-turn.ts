// ActiveTurn: a turn while a run works on it. It owns what the steps of a run share: the held branch, the way out for
// events, the questions, the state, and the count of what was used.

import { copyPlain, type Json, type JsonObject } from "../../base/json.ts";
import type { AnyDraft } from "../../events/codec.ts";
import { messageAdded } from "../../events/drafts.ts";
import type {
  Draft,
  Fact,
  Message,
  NewMessage,
  OwnEventDefinition,
  PromptRecord,
  UnknownFact,
} from "../../events/index.ts";
import { type HookContext, StateBag } from "../../middleware/index.ts";
import { addUsage, tokensOf, type Usage } from "../../models/index.ts";
import type { BranchView } from "../../projection/index.ts";
import { messageOf } from "../../projection/records.ts";
import { saveCheckpoint } from "../../sessions/checkpoints.ts";
import type { Context } from "../../sessions/context.ts";
import type { FileDoor } from "../../sessions/files.ts";
import { changeSessionState, sessionMetadata, sessionState } from "../../sessions/session-state.ts";
import type { HeldTurn } from "../../sessions/turn-writer.ts";
import type { AskedBy, EmitEvent } from "../../tools/index.ts";
import { TakenIds } from "../calls/call-ids.ts";
import { Grants } from "../calls/grants.ts";
import { type ChildHost, type ParentRun, parentOf, type StartedChild } from "../children/port.ts";
import { TurnChildren } from "../children/turn-children.ts";
import { CompactionProgress } from "../compaction/progress.ts";
import type { RunPlan } from "../config.ts";
import type { Emitter } from "../emit.ts";
import { Interrupted } from "../endings.ts";
import { fileBudget } from "../files/budget.ts";
import { fetchingOf } from "../files/fetching.ts";
import { FileResolver } from "../files/resolver.ts";
import { branchFiles } from "../files/source.ts";
import { tellError } from "../redact-errors.ts";
import { TurnTasks } from "../tasks/turn-tasks.ts";
import { keepableTexts } from "./keepable.ts";
import { OwnEmitter } from "./own-emitter.ts";
import { Parking } from "./parking.ts";
import { Questions } from "./questions.ts";
import { TurnLog } from "./turn-log.ts";

export interface ActiveTurnOptions {
  readonly context: Context;
  readonly plan: RunPlan;
  readonly held: HeldTurn;
  readonly emitter: Emitter;
  readonly signal: AbortSignal;
  readonly resumed: boolean;
  /** State as it was when the branch was taken, with what beforeTurn changed. */
  readonly state: StateBag;
  /** Who asked for the turn, and with what. */
  readonly asked: AskedBy;
  /** The turn's facts from before this run. */
  readonly earlier: readonly (Fact | UnknownFact)[];
  /** Whether a question could be answered. */
  readonly isListenedTo: () => boolean;
  /** Stops the run and everything it has started; the reason determines how it ends. */
  readonly abort: (reason: unknown) => void;
  /** Finds the agents that calls spawn. */
  readonly host: ChildHost;
  /** Whether code works on the turn, in place of a model. */
  readonly isCode?: boolean;
  /** The run that this one works for. */
  readonly parent?: ParentRun | undefined;
  /** Told of every child that begins, or is found again. */
  readonly onChild: (child: StartedChild) => void;
  /** The position up to which facts were shown, if the run has worked on the turn before. */
  readonly shown?: number | undefined;
}

/** The call behind a message. */
interface MadeFrom {
  readonly usage?: Usage | undefined;
  readonly prompt?: PromptRecord | undefined;
}

/** How soon the log is looked at again after that failed. */
const lookAgainMs = 1000;

export class ActiveTurn {
  readonly context: Context;
  readonly plan: RunPlan;
  readonly held: HeldTurn;
  readonly emitter: Emitter;
  readonly signal: AbortSignal;
  readonly resumed: boolean;
  readonly state: StateBag;
  readonly asked: AskedBy;
  readonly abort: ActiveTurnOptions["abort"];
  readonly host: ChildHost;
  readonly children = new TurnChildren();
  readonly tasks: TurnTasks;
  /** Whether a question could be answered. */
  readonly isListenedTo: () => boolean;
  readonly onChild: ActiveTurnOptions["onChild"];
  readonly asking: Questions;
  readonly parking: Parking;
  readonly log: TurnLog;
  /** The files of prompts, as the model takes them. */
  readonly files: FileResolver;
  /** How often each call may have begun to run before this run: tool.started facts say so. */
  readonly starts = new Map<string, number>();
  readonly grants = new Grants();
  readonly callIds = new TakenIds();
  /** The turn's messages that no run of it added: the input. */
  readonly inputs = new Set<string>();
  /** Files that are attached to calls: the call and the content. */
  readonly attached = new Set<string>();
  readonly own = new OwnEmitter(this);
  /** Tools that are hidden from the model because a client's answer asked for it. */
  readonly hidden = new Set<string>();
  /** Model calls of the whole turn. */
  iterations = 0;
  /** Of the whole turn's replies, as far as earlier runs wrote down what they used. */
  usage: Usage = {};
  readonly compaction = new CompactionProgress();
  /** Text that a person may have seen of a message that was not finished. */
  partial: Draft<"message.added"> | undefined;
  /** Whether the afterTurn hooks were called. */
  isSummarised = false;
  /** Something may have been queued to steer the turn. */
  isSteered = false;
  /** The handoff among the calls of the newest reply. */
  handing: { readonly callId: string; readonly to: string } | undefined;
  /** Why the turn ends after what is being done now. */
  stopReason: string | undefined;
  /** The newest renewal of the hold on the branch. */
  renewal: Promise<void> | undefined;
  /** The work on it is done; the run may go on with the same turn anew. */
  isOver = false;
  /** The turn is left open for another run. */
  isLeft = false;
  /** What has nothing to do until a time, or until it is woken: a turn that is parked with some of these sleeps as long. */
  readonly sleepers = new Map<string, number | undefined>();
  /** Something was written on the branch before the turn fell asleep, so that it wakes at once. */
  isWoken = false;
  /** It was closed by the append that began the turn after it. */
  isFollowed = false;
  /** Told of every fact that the log shows from now on. */
  onFact: ((fact: Fact | UnknownFact) => void) | undefined;
  /** What the turn consists of so far, where code works on it. */
  readonly earlier: readonly (Fact | UnknownFact)[];
  /** Whether messages can join the turn. */
  readonly isSteerable: boolean;
  readonly #parent: ParentRun | undefined;
  #hook: HookContext | undefined;
  #isListening = false;
  /** Until then no other run can have the branch, by this process's clock. */
  #heldUntil: number;
  /** The runs that have worked on this turn. */
  readonly #runIds = new Set<string>();

  constructor(options: ActiveTurnOptions) {
    const { context, plan, held, emitter, signal, resumed, state, earlier } = options;
    this.context = context;
    this.plan = plan;
    this.held = held;
    this.emitter = emitter;
    this.signal = signal;
    this.resumed = resumed;
    this.state = state;
    this.asked = options.asked;
    this.abort = options.abort;
    this.host = options.host;
    this.isListenedTo = options.isListenedTo;
    this.isSteerable = !options.isCode;
    this.earlier = options.isCode ? earlier : [];
    this.onChild = options.onChild;
    this.tasks = new TurnTasks({ context, held, host: options.host.tasks, limit: plan.limits.tasks });
    this.#parent = options.parent;
    this.#parent?.track(() => this.tokens);
    this.#heldUntil = context.clock.now() + plan.leaseMs;
    this.parking = new Parking({ clock: context.clock, clientGraceMs: plan.clientGraceMs ?? 0 });
    this.asking = new Questions({
      turnId: held.turnId,
      clock: context.clock,
      ids: context.ids,
      answerMs: plan.limits.answerMs,
      signal,
      leaving: plan.leaving,
      parking: this.parking,
      policy: () => this.questionPolicy(),
      write: (...drafts) => this.write(...drafts),
      listen: () => this.listen(),
    });
    for (const fact of earlier) {
      this.#see(fact);
      this.own.see(fact);
      if (fact.type === "message.added" && fact.usage) this.addUsage(fact.usage as Usage);
      if (fact.type === "history.compacted") this.compaction.see(fact);
    }
    this.files = new FileResolver({
      source: branchFiles(context, held.ref, { plan: plan.files, signal }),
      plan: plan.files,
      budget: (model) => fileBudget(state, model),
      onFail: (contentId, error) => this.#tellUnsent(contentId, error),
    });
    const { shown } = options;
    this.log = new TurnLog({ context, held, emitter, shown, onFact: (fact) => this.#see(fact) });
  }

  #tellUnsent(contentId: string, error: unknown): void {
    this.emitter.live({ type: "content-fail", contentId, error: tellError(this.plan, error) });
  }

  get turnId(): string {
    return this.held.turnId;
  }

  /** Whether hooks, tools or those who listen have the run's signal. */
  get hasGivenSignal(): boolean {
    return this.#hook !== undefined || this.#isListening;
  }

  write(...drafts: AnyDraft[]): Promise<readonly Fact[]> {
    return this.log.write(...drafts);
  }

  /** Renews the hold on the branch; `epoch_stale` when another run has it. */
  renew(): Promise<void> {
    this.renewal = this.#renew();
    return this.renewal;
  }

  async #renew(): Promise<void> {
    const { leaseMs } = this.plan;
    const until = this.context.clock.now() + leaseMs;
    await this.held.renew(leaseMs);
    this.#heldUntil = until;
  }

  /**
   * For what can't be taken back: a process that was paused past its lease hears the answer it waited for before anything
   * tells it that another one has acted on it. Costs nothing while the lease runs.
   */
  async ensureHeld(): Promise<void> {
    if (this.context.clock.now() >= this.#heldUntil) await this.renew();
  }

  /** Where files that come into being in this turn are stored. */
  fileDoor(origin: "tool" | "model"): FileDoor {
    const { context, held, emitter, plan, signal } = this;
    const fetching = fetchingOf({ files: plan.files, redact: plan.redact, clock: context.clock, signal, emitter });
    return { context, ref: held.ref, isChecked: false, origin, ...fetching };
  }

  view(): Promise<BranchView> {
    return this.held.view();
  }

  /** Whether something waits to steer the turn, as far as this process has seen. */
  get mayBeSteered(): boolean {
    if (!this.isSteerable) return false;
    const queue = this.context.views.cachedToAppend(this.held.ref)?.view.queue;
    return this.isSteered || queue?.some(({ when }) => when === "steer") === true;
  }

  addUsage(usage: Usage): void {
    this.usage = addUsage(this.usage, usage);
  }

  /** The id of the agent that everything here works for: this one, or the one at the root of the chain. */
  get rootId(): string | undefined {
    return this.#parent
      ? this.#parent.rootId
      : (parentOf(this.asked.metadata)?.rootId ?? (this.plan.firstStamp ?? this.plan.stamp).id);
  }

  /** What becomes of a question now: depends on who listens. */
  questionPolicy(): "wait" | "park" | "deny" {
    return this.plan.questions ?? (this.isListenedTo() ? "wait" : "deny");
  }

  /** What the turn and its children have used so far, in tokens. */
  get tokens(): number {
    return tokensOf(this.totalUsage) + this.children.tokens;
  }

  /** The limit of tokens that is reached: the turn's own, or that of a run it works for. */
  tokenLimit(): number | undefined {
    const { tokens = Number.POSITIVE_INFINITY } = this.plan.limits;
    return this.tokens >= tokens ? tokens : this.#parent?.tokenLimit();
  }

  /** What replies and summaries used together. */
  get totalUsage(): Usage {
    return addUsage(this.usage, this.compaction.summaries);
  }

  /** A message of this turn as it will be in the log, with what it used: a run that resumes the turn adds that to its own. */
  draft(message: NewMessage, { usage = {}, prompt }: MadeFrom = {}): Draft<"message.added"> {
    return messageAdded(this.context, this.turnId, message, {
      ...(Object.keys(usage).length > 0 && { usage: { ...usage } }),
      ...(prompt && { prompt: keepableTexts(prompt, message) }),
    });
  }

  async checkpoint(request: { label?: string; source: "manual" | "loop" }): Promise<string> {
    const { label, source } = request;
    const { durable } = this.plan;
    // The message whose call asks for it may still be on its way.
    await this.log.settle();
    const saved = await saveCheckpoint(this.context, this.held.ref, {
      step: this.iterations,
      source,
      ...(label !== undefined && { label }),
      ...(durable && { retention: durable.retention }),
    });
    this.emitter.live({ type: "checkpoint-save", checkpointId: saved.id, step: saved.step });
    return saved.id;
  }

  /** `emit` for hooks, or for the tool that works on a call. */
  emitFor(callId?: string): EmitEvent {
    return ((event: string | OwnEventDefinition, data: Json) => this.own.emit(event, data, callId)) as EmitEvent;
  }

  /** What hooks are given; made when the first one needs it. */
  get hook(): HookContext {
    this.#hook ??= this.#makeHook();
    return this.#hook;
  }

  #makeHook(): HookContext {
    const { held, plan, emitter } = this;
    return {
      ...held.ref,
      turnId: held.turnId,
      runId: held.runId,
      agent: plan.stamp,
      ...this.asked,
      sessionMetadata: () => sessionMetadata(this.context, held.ref.sessionId),
      signal: this.signal,
      resumed: this.resumed,
      state: this.state,
      emit: this.emitFor(),
      reachLimit: (limit: string, value?: number) =>
        emitter.live({ type: "limit-reach", limit, ...(value !== undefined && { value }) }),
      ask: (question) => this.asking.ask(question),
      withdraw: (question) => this.asking.withdraw(question),
      checkpoint: (label) => this.checkpoint({ source: "manual", ...(label !== undefined && { label }) }),
      stop: (reason) => {
        this.stopReason ??= reason;
      },
    };
  }

  #see(fact: Fact | UnknownFact): void {
    this.#parent?.see(fact);
    this.children.see(fact);
    this.tasks.see(fact);
    if (fact.type === "tool.started") {
      for (const callId of fact.callIds) this.starts.set(callId, (this.starts.get(callId) ?? 0) + 1);
      return;
    }
    if (fact.type === "content.attached" && fact.callId) this.attached.add(`${fact.callId} ${fact.contentId}`);
    if (fact.type === "message.added" && fact.source) this.inputs.add(fact.id);
    if (fact.type === "message.added" && fact.role === "assistant") this.handing = undefined;
    if (fact.type === "turn.handed") this.handing = { callId: fact.callId, to: fact.to };
    if (fact.type === "permission.granted") this.grants.see(fact);
    if (fact.type === "input.queued" || fact.type === "input.edited") this.isSteered ||= fact.when === "steer";
    if (fact.type === "turn.started" || fact.type === "turn.resumed") this.#runIds.add(fact.runId ?? "");
    // One meant for a run before this one holds for the turn: that run did not live to stop.
    if (fact.type === "interrupt.requested" && this.#runIds.has(fact.runId)) this.abort(new Interrupted(fact.reason));
    this.asking.see(fact);
    if (fact.type === "interaction.answered") this.#showTools(fact.answer.tools);
    this.onFact?.(fact);
  }

  /** An answer may change what the model is offered: `{ tools: { hide: [...], show: [...] } }`. */
  #showTools(change: Json | undefined): void {
    const { hide, show } = Object(change) as { hide?: Json; show?: Json };
    for (const name of Array.isArray(hide) ? hide : []) this.hidden.add(String(name));
    for (const name of Array.isArray(show) ? show : []) this.hidden.delete(String(name));
  }

  /** Hears what others write for this run, such as answers, and that it shall stop, until the work on the turn is over. */
  listen(): void {
    if (this.#isListening) return;
    this.#isListening = true;
    void this.#keepListening();
  }

  /** What the store says is a hint; facts decide. A look that fails shows nothing: the run itself finds out what is wrong. */
  async #keepListening(): Promise<void> {
    const { clock } = this.context;
    while (!this.signal.aborted && !this.isOver) {
      await this.#hear().catch(() => clock.sleep(lookAgainMs, this.signal));
    }
  }

  async #hear(): Promise<void> {
    const before = this.log.shown;
    await this.context.store.watch(this.held.ref, before, this.signal);
    if (this.signal.aborted || this.isOver) return;
    await this.log.settle();
    // Mostly it is the run's own writing that one hears, and that was shown by now.
    if (this.log.shown === before) await this.log.catchUp();
  }
}

/**
 * A message that may not be written yet, as it will be read from the log. It is a copy: what a hook does to it is not done
 * to what is written.
 */
export function previewMessage(draft: Draft<"message.added">): Message {
  return { ...messageOf(copyPlain(draft)) };
}

/** The state a run begins with: what the branch and its session have. */
export function stateBag(
  context: Context,
  { sessionId, branch, plan, emitter }: { sessionId: string; branch: JsonObject; plan: RunPlan; emitter: Emitter },
): StateBag {
  return new StateBag({
    branch,
    session: () => sessionState(context, sessionId),
    changeSession: (change) => changeSessionState(context, sessionId, change),
    report: (migration) => emitter.live({ type: "state-migrate", ...migration }),
    declared: plan.pipeline.state,
  });
}
