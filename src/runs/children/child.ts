// Child: one child of one call, from the first look to its end. It does not decide how the child's run goes (that is a run
// like any other), only that there is exactly one.
//   Child-1. A child's address follows from the call, so a call that runs again finds its child (address.ts).
//   Child-2. A child's turn is begun at most once for each try: its id is fixed, and it begins only on a branch without it.
//   Child-3. A child is run by the holder of its branch. A parent that does not hold it waits for its end.
//   Child-4. What a child did is read from its log, whoever ran it: a child that has ended is never run again.
//   Child-5. A parent that is interrupted interrupts its child, wherever that runs; one that parks, or loses its branch, parks it.

import { BoughError } from "../../base/errors.ts";
import { failpoint } from "../../base/failpoint.ts";
import type { AgentStamp, Fact, Part, UnknownFact } from "../../events/index.ts";
import { addUsage, tokensOf, type Usage } from "../../models/index.ts";
import type { Asleep, BranchView } from "../../projection/index.ts";
import type { SpawnOptions } from "../../tools/index.ts";
import type { RunInput, RunOptions } from "../config.ts";
import { childParked, ended, fellAsleep, handedOver, Interrupted, Lost, Parked } from "../endings.ts";
import { interruptRun } from "../interrupt.ts";
import type { ActiveTurn } from "../turn/active-turn.ts";
import type { ChildAddress, ChildCallId } from "./address.ts";
import { createChild } from "./create.ts";
import { type ChildState, type ClosedChild, isGone, lookAt } from "./look.ts";
import { Mirrors } from "./mirrors.ts";
import { type ChildAgent, type ChildHost, type ChildRun, type ParentRun, stampBelow } from "./port.ts";

/** A call that wants a child. */
export interface ChildRequest {
  readonly turn: ActiveTurn;
  readonly host: ChildHost;
  readonly call: ChildCallId;
  /** The message that asked for the call. */
  readonly messageId: string;
  /** Ends this attempt of the call. */
  readonly signal: AbortSignal;
  readonly agent: ChildAgent;
  readonly input: string | readonly Part[];
  readonly options: SpawnOptions;
  /** How the child's run is asked for. */
  readonly run: RunOptions;
  /** Whether the call can't have spawned the child before. */
  readonly isFirst: boolean;
}

/** How often a child that another process runs is looked at, in case that process dies. */
const lookEveryMs = 500;

/** What a run of a child ends with when another was faster, or the child is gone: looking at it again tells. */
export const lostRaces = [
  "run_active",
  "nothing_to_resume",
  "turn_open",
  "branch_not_found",
  "session_not_found",
] as const;

export class Child {
  readonly #request: ChildRequest;
  readonly #address: ChildAddress;
  readonly #mirrors: Mirrors;
  readonly #stamp: AgentStamp;
  /** The position in the child's log up to which its facts were seen. */
  #seen = 0;
  /** What another process's run of the child used, as far as its log tells. */
  #farUsage: Usage = {};
  #run: ChildRun | undefined;
  #isMissing = false;
  /** Ends what counts this child among those that do something. */
  #isBusy: (() => void) | undefined;

  constructor(request: ChildRequest, address: ChildAddress) {
    const { turn, agent, call } = request;
    this.#request = request;
    this.#address = address;
    const own = { id: agent.id, name: agent.name, chain: [agent.name], depth: 0 };
    this.#stamp = stampBelow(turn.plan.stamp, own);
    this.#mirrors = new Mirrors({ turn, callId: call.callId, ref: address.ref, agent: this.#stamp });
  }

  /** Brings the child to its end. Rejects with `Parked` when it waits for something that no run is needed for. */
  async end(): Promise<ClosedChild> {
    const { signal, turn, call } = this.#request;
    const stop = () => void this.#stop(signal.reason).catch(() => {});
    signal.addEventListener("abort", stop, { once: true });
    this.#isBusy = turn.children.busy(call.callId);
    const { ref, turnId } = this.#address;
    turn.onChild({ ...ref, turnId, callId: call.callId, agent: this.#stamp });
    try {
      const closed = await this.#bringToEnd();
      failpoint("run.child.ended");
      await this.#mirrors.settle();
      return closed;
    } finally {
      this.#isBusy();
      signal.removeEventListener("abort", stop);
    }
  }

  /** The one rule for every crash: look at the child, and do what is next. */
  async #bringToEnd(): Promise<ClosedChild> {
    const { signal, turn } = this.#request;
    let isParked = false;
    // A call that runs for the first time has no child yet, and one that was just made has no turn: no need to look.
    let known: ChildState | undefined = this.#request.isFirst ? { at: "missing" } : undefined;
    for (;;) {
      if (signal.aborted) throw signal.reason;
      const state = known ?? (await lookAt(turn.context, this.#address));
      known = undefined;
      if (state.at === "closed") return state;
      if (state.at === "missing") known = await this.#create();
      else if (state.at === "busy") await this.#whileBusy(state.seq);
      else if (state.at === "unbegun") isParked = await this.#work(this.#request.input);
      else if (state.isHeld) await this.#follow(state.seq);
      else if (state.asleep && !this.#isDue(state.asleep)) isParked = await this.#untilAwake(state, state.asleep);
      else if (isParked && state.questions.length > 0) isParked = await this.#untilAnswered(state);
      else isParked = await this.#work(undefined);
    }
  }

  /** The state that follows, if it is known: another process may have been faster. */
  async #create(): Promise<ChildState | undefined> {
    const { turn, host, agent, call, messageId, options } = this.#request;
    if (this.#isMissing) throw deleted(this.#address);
    this.#isMissing = true;
    const view = () => turn.view();
    const depth = this.#stamp.depth;
    const origin = { context: turn.context, host, agent, call, messageId, depth, options, view, awaited: true };
    const isMade = await createChild(origin, this.#address);
    failpoint("run.child.created");
    return isMade ? { at: "unbegun" } : undefined;
  }

  /** Runs the child here; true when it was parked for a question. */
  async #work(input: RunInput | undefined): Promise<boolean> {
    const { turn, agent, signal, run: options } = this.#request;
    const { ref, turnId, inputId } = this.#address;
    const { context } = turn;
    const check = (view: BranchView) => {
      if (view.open || view.turns.some(({ id }) => id === turnId)) throw begunElsewhere(this.#address);
    };
    const opening = input === undefined ? {} : { opening: { turnId, check } };
    if (input !== undefined) context.ids.vouch(inputId);
    const message =
      input === undefined ? undefined : [{ id: inputId, role: "user" as const, content: input as string }];
    const { model, instructions, toolSpecs } = turn.plan;
    const isFramed = this.#request.options.prompt === "parent";
    const frame = isFramed && { frame: { model, toolSpecs, ...(instructions !== undefined && { instructions }) } };
    const run = agent.launch(message, { context, ref, parent: this.#parentRun(), options, ...frame, ...opening });
    run.discardEvents();
    this.#run = run;
    if (signal.aborted) void this.#stop(signal.reason).catch(() => {});
    try {
      await run.started;
      failpoint("run.child.begun");
      const { status, reason } = await run.result;
      if (signal.aborted) throw signal.reason;
      if (status === "parked" && reason === fellAsleep) return true;
      if (status === "parked" && reason !== "question") throw new Parked(reason === childParked ? reason : handedOver);
      return status === "parked";
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (lostRaces.some((code) => BoughError.is(error, code))) return false;
      throw error;
    } finally {
      this.#run = undefined;
    }
  }

  #parentRun(): ParentRun {
    const { turn } = this.#request;
    const { plan, emitter } = turn;
    return {
      agent: plan.stamp,
      rootId: turn.rootId,
      emitter,
      maxDepth: plan.limits.maxDepth,
      leaving: plan.leaving,
      isListenedTo: () => turn.isListenedTo(),
      see: (fact) => this.#see(fact),
      tokenLimit: () => turn.tokenLimit(),
      track: (tokens) => turn.children.track(this.#address.turnId, tokens),
    };
  }

  #see(fact: Fact | UnknownFact): void {
    if (fact.seq <= this.#seen) return;
    this.#seen = fact.seq;
    this.#mirrors.see(fact);
  }

  /** Child-3. Another process runs it: what it writes is shown here, too. */
  async #follow(seq: number): Promise<void> {
    const { turn } = this.#request;
    const { context, emitter } = turn;
    const { ref, turnId } = this.#address;
    turn.children.track(turnId, () => tokensOf(this.#farUsage));
    const { facts } = await context.journal.read(ref, { after: await this.#followedUpTo() });
    for (const fact of facts) {
      if (fact.type === "message.added" && fact.usage) this.#farUsage = addUsage(this.#farUsage, fact.usage as Usage);
      this.#see(fact);
    }
    emitter.relay(facts, { ...ref, agent: this.#stamp });
    if (facts.length === 0) await this.#change(seq);
  }

  /** Where the facts begin that this process has not seen: at first, those of the child's turn. */
  async #followedUpTo(): Promise<number> {
    if (this.#seen > 0) return this.#seen;
    const { view } = await this.#request.turn.context.views.loadForRun(this.#address.ref);
    return (view.open?.from ?? view.seq + 1) - 1;
  }

  /** Resolves when something happens on the child's branch, and from time to time: a process may die without a word. */
  async #change(seq: number, until?: number): Promise<void> {
    const { turn, signal } = this.#request;
    const { store, clock } = turn.context;
    const over = new AbortController();
    const either = AbortSignal.any([signal, over.signal]);
    const lookAfterMs = until === undefined ? lookEveryMs : Math.max(0, Math.min(lookEveryMs, until - clock.now()));
    await Promise.race([store.watch(this.#address.ref, seq, either), clock.sleep(lookAfterMs, either)]).catch(
      (error) => {
        if (!isGone(error)) throw error;
      },
    );
    over.abort();
  }

  /** Another turn has the branch. The call waits for it, as calls wait for a place among those that run. */
  async #whileBusy(seq: number): Promise<void> {
    const { turn, call } = this.#request;
    turn.parking.queue(call.callId);
    await this.#change(seq).finally(() => turn.parking.unqueue(call.callId));
  }

  /** The child waits for people: so does the call, or it parks with the others of its run. */
  async #untilAnswered({ questions, seq }: Extract<ChildState, { at: "open" }>): Promise<boolean> {
    const { turn, call } = this.#request;
    for (const question of questions) this.#mirrors.open(question);
    await this.#mirrors.settle();
    if (turn.plan.leaving.aborted) throw new Parked(handedOver);
    const { callId } = call;
    this.#isBusy?.();
    try {
      if (turn.questionPolicy() !== "park") await this.#change(seq);
      // What another child of the call does goes on first.
      else if (turn.children.busyOf(callId) > 0) await Promise.race([this.#change(seq), turn.children.whenIdle()]);
      else await this.#changeOrPark(seq, questions[0]!.kind);
    } finally {
      this.#isBusy = turn.children.busy(callId);
    }
    return true;
  }

  #changeOrPark(seq: number, kind: string, until?: number): Promise<void> {
    const { turn, call } = this.#request;
    let stay = () => {};
    const parked = new Promise<never>((_, reject) => {
      stay = turn.parking.wait({ callId: call.callId, kind }, reject);
    });
    return Promise.race([parked, this.#change(seq, until)]).finally(() => stay());
  }

  #isDue({ until }: Asleep): boolean {
    return until !== undefined && until <= this.#request.turn.context.clock.now();
  }

  /** The child sleeps: so does the call, and its turn with it when nothing else is under way. */
  async #untilAwake({ questions, seq }: Extract<ChildState, { at: "open" }>, { until }: Asleep): Promise<boolean> {
    const { turn, call } = this.#request;
    for (const question of questions) this.#mirrors.open(question);
    await this.#mirrors.settle();
    if (turn.plan.leaving.aborted) throw new Parked(handedOver);
    const { callId } = call;
    this.#isBusy?.();
    turn.sleepers.set(callId, until);
    try {
      if (turn.children.busyOf(callId) > 0) await Promise.race([this.#change(seq, until), turn.children.whenIdle()]);
      else await this.#changeOrPark(seq, "sleep", until);
      turn.sleepers.delete(callId);
    } finally {
      this.#isBusy = turn.children.busy(callId);
    }
    return true;
  }

  /** Child-5. */
  async #stop(reason: unknown): Promise<void> {
    const { turn } = this.#request;
    const isLeft = reason instanceof Parked || reason instanceof Lost || (reason === ended && turn.isLeft);
    if (isLeft) return this.#run?.park();
    const why = reason instanceof Interrupted ? reason.reason : BoughError.is(reason) ? reason.code : "parent-ended";
    if (this.#run) return this.#run.interrupt(why);
    const state = await lookAt(turn.context, this.#address);
    if (state.at === "open") await interruptRun(turn.context, this.#address.ref, { reason: why });
  }
}

/** Child-2. */
export function begunElsewhere({ ref, turnId }: ChildAddress): BoughError {
  return new BoughError("turn_open", `Branch "${ref.branchId}" has another turn.`, { data: { ...ref, turnId } });
}

function deleted({ ref }: ChildAddress): BoughError {
  return new BoughError("branch_not_found", `Branch "${ref.branchId}" was deleted while a child worked on it.`, {
    data: { ...ref },
  });
}
