// Submissions: the runs that clients requested from this process, and the queued inputs.
//   Submissions-1. The store decides which run has a branch; this class holds only handles.
//   Submissions-2. An input with an idempotency key starts at most one turn: its first message has an id derived from the key, which a log accepts once,
//       from whichever process and however often.
//   Submissions-3. Queued inputs of a branch start in the order of arrival, after those that interrupt. They are held in this
//       process only.
//   Submissions-4. The queue is bounded by number per branch, and by bytes per tenant and process.

import type { Agent } from "../agent/index.ts";
import { BoughError } from "../base/errors.ts";
import type { Identity } from "../base/identity.ts";
import type { JsonObject } from "../base/json.ts";
import { sha256Hex } from "../base/sha256.ts";
import type { NewMessage, Part } from "../events/index.ts";
import { branchKey } from "../log/branch-key.ts";
import type { BranchRef } from "../log/store.ts";
import type { Run, RunOptions } from "../runs/index.ts";
import { readBranch } from "../sessions/branches.ts";
import { findHolder } from "../sessions/claims.ts";
import type { Context } from "../sessions/context.ts";
import { readEvents } from "../sessions/history.ts";
import { checkedBySchema } from "../tools/index.ts";
import type { InputAnswer, InputBody, InterruptAnswer, InterruptBody } from "../wire/index.ts";
import { type AllowedConfig, clientConfig } from "./client-config.ts";
import type { QueueBytes } from "./queue-bytes.ts";
import { Refusal } from "./refusal.ts";

export interface Submission {
  readonly agent: Agent;
  /** The agent's id, to find the agent again when the input leaves the queue. */
  readonly agentId: string;
  readonly ref: BranchRef;
  readonly body: InputBody;
  /** The caller. */
  readonly identity: Identity;
  /** The idempotency key. */
  readonly key?: string;
}

interface Prepared {
  readonly agent: Agent;
  readonly agentId: string;
  readonly ref: BranchRef;
  readonly inputId: string;
  readonly messages: readonly NewMessage[] | undefined;
  /** The options of the run. */
  readonly options: RunOptions;
  /** Of an input with a key. */
  readonly keyed?: { readonly place: string; readonly fingerprint: string };
}

/** A queued input, and its bytes in the budget (Submissions-4). Its agent may be closed or replaced meanwhile. */
type Queued = Omit<Prepared, "agent"> & { readonly bytes: number };

/** How often an active run is interrupted before giving up, and how often a run of another process is checked. */
const interruptions = 10;
const pollMs = 100;
/** The retry delay of an input whose agent is unavailable. */
const agentPollMs = 1_000;
const rememberedKeys = 10_000;
const fingerprintKey = "inputFingerprint";
/** Long enough for a client on a slow network, short enough not to hold resources for long. */
export const clientGraceMs = 5_000;

/** The run options that a server sets. */
function asking(questions: "wait" | "park"): Pick<RunOptions, "questions" | "clientGraceMs"> {
  return { questions, clientGraceMs };
}

export class Submissions {
  readonly #context: Context;
  readonly #agent: (agentId: string) => Promise<Agent>;
  readonly #limits: { readonly runs: number; readonly queue: number };
  readonly #allowConfig: readonly AllowedConfig[];
  readonly #questions: "wait" | "park";
  readonly #warn: (message: string, error: unknown) => void;
  readonly #active = new Map<string, Run>();
  readonly #queues = new Map<string, Queued[]>();
  readonly #queued: QueueBytes;
  /** How many inputs are interrupting a branch's run, to start in its place. */
  readonly #urgent = new Map<string, number>();
  readonly #keyed = new Map<string, { fingerprint: string; answer: Promise<InputAnswer> }>();
  readonly #over = new AbortController();
  /** Runs that don't have their branch yet. */
  #starting = 0;

  constructor(options: {
    context: Context;
    /** Looks up the current agent of an id. */
    agent: (agentId: string) => Promise<Agent>;
    limits: { readonly runs: number; readonly queue: number };
    allowConfig: readonly AllowedConfig[];
    /** The budget of queued inputs. */
    queued: QueueBytes;
    questions: "wait" | "park";
    warn: (message: string, error: unknown) => void;
  }) {
    this.#context = options.context;
    this.#agent = options.agent;
    this.#queued = options.queued;
    this.#limits = options.limits;
    this.#allowConfig = options.allowConfig;
    this.#questions = options.questions;
    this.#warn = options.warn;
  }

  /** Starts a run, or throws; resolves when the run has the branch. */
  submit(submission: Submission): Promise<InputAnswer> {
    const { body, key } = submission;
    if (key === undefined) return this.#admit(this.#prepare(submission, this.#context.ids.next()), body.ifActive);
    return this.#submitOnce(submission, key);
  }

  /** Submissions-2. */
  async #submitOnce(submission: Submission, key: string): Promise<InputAnswer> {
    const { body, ref } = submission;
    const inputId = `in-${sha256Hex(`${ref.branchId}\n${key}`).slice(0, 32)}`;
    const place = JSON.stringify([ref.sessionId, inputId]);
    const fingerprint = sha256Hex(JSON.stringify(body));
    const known = this.#keyed.get(place);
    if (known) {
      if (known.fingerprint !== fingerprint) throw new Refusal("idempotency_conflict");
      const answer = await known.answer;
      if (answer.status === "started") return answer;
      return (await this.#findInput(ref, inputId, fingerprint)) ?? answer;
    }
    const prepared = this.#prepare(submission, inputId, { place, fingerprint });
    const answer = (async () =>
      (await this.#findInput(ref, inputId, fingerprint)) ?? (await this.#admit(prepared, body.ifActive)))();
    this.#keyed.set(place, { fingerprint, answer });
    answer.catch(() => this.#keyed.delete(place));
    if (this.#keyed.size > rememberedKeys) this.#keyed.delete(this.#keyed.keys().next().value!);
    return answer;
  }

  /** Holds the handle of a run until it ends. */
  #track(ref: BranchRef, run: Run): void {
    const key = branchKey(ref);
    this.#active.set(key, run);
    const done = () => {
      if (this.#active.get(key) === run) this.#active.delete(key);
    };
    run.result.then(done, done);
  }

  /** The run that continues a turn: the one started for it, or one that was faster. */
  async takenUp(ref: BranchRef, run: Run): Promise<string | undefined> {
    try {
      run.discardEvents();
      await run.started;
    } catch (error) {
      if (BoughError.is(error, "run_active")) return String(error.data.runId);
      if (BoughError.is(error, "nothing_to_resume") || BoughError.is(error, "epoch_stale")) return undefined;
      throw error;
    }
    this.#track(ref, run);
    return run.runId;
  }

  async interrupt(agent: Agent, ref: BranchRef, body: InterruptBody): Promise<InterruptAnswer> {
    const { expectedRunId, reason = "interrupted by client" } = body;
    const request = { reason, ...(expectedRunId !== undefined && { runId: expectedRunId }) };
    const { outcome, runId } = await agent.interrupt(ref, request);
    return { status: outcome, ...(runId !== undefined && { runId }) };
  }

  /** Stops starting queued inputs. The agents hand their runs over. */
  close(): void {
    this.#over.abort();
    for (const queue of this.#queues.values()) for (const { bytes } of queue.splice(0)) this.#queued.give(bytes);
    this.#queues.clear();
  }

  /** Whether nothing is running, starting or queued. */
  get isIdle(): boolean {
    return this.#active.size + this.#starting + this.#queues.size + this.#urgent.size === 0;
  }

  #prepare({ agent, agentId, ref, body, identity }: Submission, inputId: string, keyed?: Prepared["keyed"]): Prepared {
    const config = clientConfig(body.config, this.#allowConfig, agent);
    const { output, context } = body;
    const metadata: JsonObject = { ...body.metadata, ...(keyed && { [fingerprintKey]: keyed.fingerprint }) };
    const { tenant, user, scopes } = identity;
    const options: RunOptions = {
      identity: { tenant, scopes, ...(user !== undefined && { user }) },
      ...asking(body.questions ?? this.#questions),
      ifWaiting: "refuse",
      ...(config && { config }),
      ...(output && { output: { ...modeOf(output), schema: checkedBySchema(output.schema) } }),
      ...(context !== undefined && { context }),
      ...(Object.keys(metadata).length > 0 && { metadata }),
    };
    return { agent, agentId, ref, inputId, messages: messagesOf(body, inputId), options, ...(keyed && { keyed }) };
  }

  async #findInput(ref: BranchRef, inputId: string, fingerprint: string): Promise<InputAnswer | undefined> {
    const { messages, uncommittedTurn: open, stagedTurns, turns } = await readBranch(this.#context, ref);
    const unclosed = [...stagedTurns, ...(open ? [open] : [])];
    const all = [...messages, ...unclosed.flatMap((turn) => turn.messages)];
    const turnId = all.findLast(({ id }) => id === inputId)?.turnId;
    if (turnId === undefined) return undefined;
    const from = [...turns, ...unclosed].find(({ id }) => id === turnId)?.from ?? 1;
    const [begun] = await readEvents(this.#context, ref, { after: from - 1, limit: 1 });
    if (begun?.type !== "turn.started") return undefined;
    if (begun.metadata?.[fingerprintKey] !== fingerprint) throw new Refusal("idempotency_conflict");
    return { inputId, status: "started", ...(begun.runId !== undefined && { runId: begun.runId }) };
  }

  async #admit(prepared: Prepared, ifActive: InputBody["ifActive"] = "reject"): Promise<InputAnswer> {
    const key = branchKey(prepared.ref);
    const queue = this.#queues.get(key);
    if (ifActive === "queue" && queue) return this.#enqueue(queue, prepared);
    if (ifActive === "interrupt") return this.#interruptAndStart(prepared);
    const admitted = await this.#tryStart(prepared);
    if (!("refused" in admitted)) return admitted;
    if (ifActive === "reject") throw admitted.refused;
    return this.#enqueue(this.#queues.get(key), prepared);
  }

  async #interruptAndStart(prepared: Prepared): Promise<InputAnswer> {
    const { agent, ref } = prepared;
    const key = branchKey(ref);
    this.#urgent.set(key, (this.#urgent.get(key) ?? 0) + 1);
    try {
      for (let tries = 0; ; tries++) {
        const admitted = await this.#tryStart(prepared);
        if (!("refused" in admitted)) return admitted;
        if (tries === interruptions) throw admitted.refused;
        const runId = String(admitted.refused.data.runId);
        await agent.interrupt(ref, { runId, reason: "superseded by another input" });
        await this.#whileHeld(ref);
      }
    } finally {
      const others = this.#urgent.get(key)! - 1;
      if (others > 0) this.#urgent.set(key, others);
      else this.#urgent.delete(key);
    }
  }

  /**
   * The response, or why the branch is not free. The run that blocks an input with a key may be the run of that very
   * input, started by another process: then it is the response (Submissions-2).
   */
  async #tryStart(prepared: Prepared): Promise<InputAnswer | { readonly refused: BoughError }> {
    const { inputId, ref, keyed } = prepared;
    try {
      return { inputId, status: "started", runId: await this.#start(prepared) };
    } catch (error) {
      const isActive = BoughError.is(error, "run_active") || BoughError.is(error, "turn_open");
      const isTaken = isActive || BoughError.is(error, "event_conflict");
      const earlier = keyed && isTaken ? await this.#findInput(ref, inputId, keyed.fingerprint) : undefined;
      if (earlier) return earlier;
      if (isActive) return { refused: error };
      throw error;
    }
  }

  /** Starts a run and waits until it has the branch; throws if it can't get it. */
  async #start({ agent, ref, messages, options }: Prepared): Promise<string> {
    if (this.#over.signal.aborted) throw new BoughError("store_closed", "The server is closing.");
    if (this.#active.size + this.#starting >= this.#limits.runs) {
      throw new Refusal("rate_limited", "Too many runs are active. Try again later.", { retryAfterMs: 1000 });
    }
    this.#starting++;
    try {
      const run = agent.run(messages, { ...options, ...ref });
      run.discardEvents();
      await run.started;
      this.#track(ref, run);
      return run.runId;
    } finally {
      this.#starting--;
    }
  }

  #enqueue(queue: Queued[] | undefined, { agent: _agent, ...prepared }: Prepared): InputAnswer {
    const { inputId, ref } = prepared;
    const waiting = queue ?? [];
    if (waiting.length >= this.#limits.queue) throw new Refusal("queue_full");
    const bytes = sizeOf(prepared);
    const full = this.#queued.take(bytes);
    if (full) throw tooMuchQueued(full === this.#queued ? "this tenant" : "all tenants", full);
    waiting.push({ ...prepared, bytes });
    if (!queue) {
      this.#queues.set(branchKey(ref), waiting);
      void this.#work(ref, waiting);
    }
    return { inputId, status: "queued" };
  }

  /** Submissions-3. */
  async #work(ref: BranchRef, queue: Queued[]): Promise<void> {
    const key = branchKey(ref);
    const shift = () => {
      const done = queue.shift();
      if (done) this.#queued.give(done.bytes);
    };
    while (queue.length > 0 && !this.#over.signal.aborted) {
      await this.#whileHeld(ref);
      if (this.#over.signal.aborted) break;
      if (this.#urgent.has(key)) {
        await this.#context.clock.sleep(pollMs, this.#over.signal);
        continue;
      }
      const [next] = queue;
      try {
        const agent = await this.#agent(next!.agentId);
        const admitted = await this.#tryStart({ ...next!, agent });
        if (!("refused" in admitted)) shift();
        else if (BoughError.is(admitted.refused, "turn_open")) await this.#untilNews(ref, admitted.refused);
        // Somebody was faster, or the store's clock knows better than ours whether the branch is free.
        else await this.#context.clock.sleep(pollMs, this.#over.signal);
      } catch (error) {
        const waitMs = error instanceof Refusal ? laterMs(error) : undefined;
        if (waitMs !== undefined) await this.#context.clock.sleep(waitMs, this.#over.signal);
        else {
          this.#warn("A queued input could not be started:", error);
          shift();
          if (next!.keyed) this.#keyed.delete(next!.keyed.place);
        }
      }
    }
    this.#queues.delete(key);
  }

  /** A parked turn may wait for days: it is checked again when something is written. */
  #untilNews(ref: BranchRef, { data }: BoughError): Promise<void> {
    return this.#context.store.watch(ref, Number(data.seq), this.#over.signal);
  }

  /** Resolves when the branch seems to be free. */
  async #whileHeld(ref: BranchRef): Promise<void> {
    const { signal } = this.#over;
    while (!signal.aborted) {
      const own = this.#active.get(branchKey(ref));
      if (own) await Promise.race([own.result.catch(() => {}), aborted(signal)]);
      else if (await findHolder(this.#context, ref).catch(() => undefined))
        await this.#context.clock.sleep(pollMs, signal);
      else return;
    }
  }
}

/** When a refused input is retried; never if its agent no longer exists. */
function laterMs({ problem: { code } }: Refusal): number | undefined {
  if (code === "agent_not_found") return undefined;
  return code === "agent_unavailable" ? agentPollMs : pollMs;
}

function modeOf({ mode }: NonNullable<InputBody["output"]>): { mode?: "native" | "tool" } {
  return mode === undefined ? {} : { mode };
}

/** Submissions-4: the size of the input as JSON. */
function sizeOf({ messages, options }: Pick<Prepared, "messages" | "options">): number {
  return JSON.stringify([messages, options]).length;
}

function tooMuchQueued(of: string, { limit }: QueueBytes): Refusal {
  return new Refusal(
    "queue_full",
    `The queued inputs of ${of} would exceed ${limit} bytes with this one. Try again later.`,
    {
      limit,
    },
  );
}

/** The first message has the input's id. No input, or an empty string or array, resumes. */
function messagesOf({ input }: InputBody, inputId: string): readonly NewMessage[] | undefined {
  if (input === undefined || input.length === 0) return undefined;
  const isList = typeof input !== "string" && "role" in input[0]!;
  const messages = isList
    ? (input as readonly NewMessage[])
    : [{ role: "user" as const, content: input as readonly Part[] }];
  return messages.map((message, i) => (i === 0 ? { ...message, id: inputId } : message));
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
