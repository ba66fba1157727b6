// Submitter: how an input that is not waited for gets to a branch: it begins a turn, or waits in the branch's queue, or takes the
// place of what runs. It holds no state: the log decides.

import { BoughError } from "../base/errors.ts";
import type { BranchRef } from "../log/store.ts";
import {
  type InterruptOutcome,
  type InterruptRequest,
  messagesOf,
  type Run,
  type RunInput,
  type RunOptions,
} from "../runs/index.ts";
import { resolveBranch } from "../sessions/branches.ts";
import type { Context, Scope } from "../sessions/context.ts";
import type { InputMessage } from "../sessions/files.ts";
import { type Queuing, queueInput } from "../sessions/queue.ts";
import type { Launcher } from "./launcher.ts";
import type { QueueTaker } from "./queue-taker.ts";

/** What happens to an input while a turn is open on its branch. */
export type IfActive = "reject" | "queue" | "steer" | "interrupt";

/** Options of an input that is not waited for. */
export interface InputOptions<Output = unknown, RunContext = unknown>
  extends Omit<RunOptions<never, RunContext>, "output"> {
  readonly output?: Output;
  /**
   * While a turn is open: `"reject"` (default) fails with `run_active`. `"queue"` keeps the input in the log until a turn of its
   * own can begin. `"steer"` puts it into the running turn, between two model calls; if that ends first, it begins the next
   * turn. `"interrupt"` ends what runs and begins a turn.
   */
  readonly ifActive?: IfActive;
  /** The input's id; new by default. On one branch the same id begins one turn, or is queued once. */
  readonly inputId?: string;
}

/** What became of an input. */
export interface Submitted {
  /** The id of the first message it added; or, of a queued input, its id in the queue and the `inputId` of its messages. */
  readonly inputId: string;
  readonly status: "started" | "queued";
  /** The run that was started; absent while the input waits. */
  readonly runId?: string;
  /** Its handle, if the run was started by this call. */
  readonly run?: Run;
}

/** What the agent lends to it. */
export interface SubmitterOptions {
  readonly context: Context;
  readonly agentId: string | undefined;
  readonly launcher: Launcher;
  readonly taker: QueueTaker;
  interrupt(scope: Scope, request: InterruptRequest): Promise<InterruptOutcome>;
}

/** How an input is queued. */
export interface QueueRequest {
  readonly inputId: string;
  readonly when: "idle" | "next" | "steer";
  /** How many inputs may wait on the branch. */
  readonly limit?: number;
}

/** How many runs an input interrupts to get its place: others may interrupt, too. */
const interruptions = 10;

export class Submitter {
  readonly #options: SubmitterOptions;

  constructor(options: SubmitterOptions) {
    this.#options = options;
  }

  get taker(): QueueTaker {
    return this.#options.taker;
  }

  async submit(input: RunInput | undefined, options: InputOptions): Promise<Submitted> {
    const { ifActive = "reject", inputId = this.#options.context.ids.next(), ...rest } = options;
    const run = rest as RunOptions;
    const messages = input === undefined ? undefined : messagesOf(input);
    const given = messages?.map((message, i) => (i === 0 ? { ...message, id: inputId } : message));
    if (ifActive === "interrupt") return this.replace(given, run, inputId);
    const waits = given && (ifActive === "queue" || ifActive === "steer");
    try {
      return started(inputId, await this.start(given, run, { isFree: waits === true }));
    } catch (error) {
      if (!waits || !isBusy(error)) throw error;
    }
    await this.queue(given, run, { inputId, when: ifActive === "steer" ? "steer" : "idle" });
    return { inputId, status: "queued" };
  }

  /** Begins a run and waits until it has the branch. With `isFree`, only if no turn is open and no input waits. */
  async start(
    messages: readonly InputMessage[] | undefined,
    options: RunOptions,
    { isFree }: { isFree: boolean },
  ): Promise<Run> {
    const run = this.#options.launcher.launch(messages, options, isFree ? { takes: "free" } : {});
    await run.started;
    return run;
  }

  /** Queues an input as a run with these options would be asked for. */
  async queue(messages: readonly InputMessage[], options: RunOptions, request: QueueRequest): Promise<Queuing> {
    const { context, launcher, taker, agentId } = this.#options;
    const ref = await this.#resolve(options);
    const { by, metadata, wholeRequest } = await launcher.plan(options);
    if (wholeRequest?.missing) throw notQueueable(wholeRequest.missing);
    const queuing = await queueInput(context, ref, messages, {
      ...request,
      ...(agentId !== undefined && { agentId }),
      ...(by !== undefined && { by }),
      ...(metadata && { metadata }),
      ...(wholeRequest && { request: wholeRequest }),
    });
    taker.look(ref);
    return queuing;
  }

  /**
   * Ends what runs on the branch and begins a turn in its place. The input waits before all others meanwhile, so whichever process
   * closes the turn takes it next.
   */
  async replace(
    messages: readonly InputMessage[] | undefined,
    options: RunOptions,
    inputId: string,
  ): Promise<Submitted> {
    let blocking: unknown;
    try {
      return started(inputId, await this.start(messages, options, { isFree: false }));
    } catch (error) {
      if (!messages || !isBusy(error)) throw error;
      blocking = error;
    }
    const { isNew } = await this.queue(messages, options, { inputId, when: "next" });
    if (!isNew) throw blocking;
    return { inputId, status: "started", runId: await this.#takenInPlace(await this.#resolve(options), inputId) };
  }

  /** Interrupts what runs until the input is taken; the run that took it. */
  async #takenInPlace(ref: BranchRef, inputId: string): Promise<string> {
    const { context, interrupt, taker } = this.#options;
    const interrupted = new Set<string>();
    for (;;) {
      if (taker.over.aborted) throw new BoughError("store_closed", "The agent is closed.");
      const { view } = await context.views.loadForRun(ref);
      const { seq, open, queue } = view;
      if (!queue.some(({ id }) => id === inputId)) return await this.#takerOf(ref, inputId);
      const runId = open?.runs.at(-1)?.runId;
      if (runId !== undefined && !interrupted.has(runId) && interrupted.size < interruptions) {
        interrupted.add(runId);
        await interrupt(ref, { runId, reason: "superseded by another input" });
      } else await context.store.watch(ref, seq, taker.over);
    }
  }

  async #takerOf(ref: BranchRef, inputId: string): Promise<string> {
    const { facts } = await this.#options.context.journal.read(ref, { reverse: true });
    const isTaking = (fact: (typeof facts)[number]) => fact.type === "turn.started" && fact.inputs?.includes(inputId);
    const taking = facts.find(isTaking) as { runId?: string } | undefined;
    if (taking?.runId !== undefined) return taking.runId;
    throw new BoughError("input_closed", `Input "${inputId}" was withdrawn.`, { data: { ...ref, inputId } });
  }

  #resolve(options: RunOptions): Promise<BranchRef> {
    const { sessionId = "", branchId } = options.branch ? refOf(options.branch) : options;
    return resolveBranch(this.#options.context, branchId === undefined ? { sessionId } : { sessionId, branchId });
  }
}

function started(inputId: string, run: Run): Submitted {
  return { inputId, status: "started", runId: run.runId, run };
}

/** Whether a turn is open on the branch, or inputs wait. */
export function isBusy(error: unknown): boolean {
  return BoughError.is(error, "run_active") || BoughError.is(error, "turn_open");
}

function refOf({ sessionId, id: branchId }: NonNullable<RunOptions["branch"]>): BranchRef {
  return { sessionId, branchId };
}

function notQueueable(missing: readonly string[]): BoughError {
  const sentence =
    `An input with ${missing.join(", ")} can't be queued, because the log can't keep that. ` +
    "Give it to the agent, or wait until the branch is free.";
  return new BoughError("request_incomplete", sentence, { data: { missing } });
}
