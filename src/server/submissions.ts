// Submissions: the runs that this process was asked for over the wire, and the inputs that wait to become one.
//   M1. The store decides who has a branch; what is held here are only handles.
//   M2. An input with a key begins at most one turn: its first message has an id made from the key, which a log takes once,
//       whichever process asks and however often.
//   M3. Inputs that wait for a branch start in the order in which they came, after those that interrupt. They wait in this
//       process only.
//   M4. What waits is bounded by number for each branch, and by bytes for the tenant and the process.

import { createHash } from "node:crypto";
import type { Agent } from "../agent/index.ts";
import { BoughError } from "../base/errors.ts";
import type { Identity } from "../base/identity.ts";
import type { JsonObject } from "../base/json.ts";
import type { NewMessage, Part } from "../events/index.ts";
import { branchKey } from "../live/index.ts";
import type { BranchRef } from "../log/store.ts";
import type { Run, RunOptions } from "../runs/index.ts";
import { holdBranch } from "../sessions/branches.ts";
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
  readonly ref: BranchRef;
  readonly body: InputBody;
  /** Who asks. */
  readonly identity: Identity;
  /** The idempotency key. */
  readonly key?: string;
}

interface Prepared {
  readonly agent: Agent;
  readonly ref: BranchRef;
  readonly inputId: string;
  readonly messages: readonly NewMessage[] | undefined;
  /** How the run is asked. */
  readonly options: RunOptions;
  /** Of an input with a key. */
  readonly keyed?: { readonly place: string; readonly fingerprint: string };
}

/** An input that waits, and how much of the budget it takes (M4). */
type Queued = Prepared & { readonly bytes: number };

/** How often a run in the way is interrupted before giving up, and how often one of another process is looked after. */
const interruptions = 10;
const pollMs = 100;
const rememberedKeys = 10_000;
const fingerprintKey = "inputFingerprint";
/** Long enough for a program on the other side of a slow network, short enough that nothing is held for long. */
export const clientGraceMs = 5_000;

/** How a run that a server starts asks. */
function asking(questions: "wait" | "park"): Pick<RunOptions, "questions" | "clientGraceMs"> {
  return { questions, clientGraceMs };
}

export class Submissions {
  readonly #context: Context;
  readonly #limits: { readonly runs: number; readonly queue: number };
  readonly #allowConfig: readonly AllowedConfig[];
  readonly #questions: "wait" | "park";
  readonly #warn: (message: string, error: unknown) => void;
  readonly #active = new Map<string, Run>();
  readonly #queues = new Map<string, Queued[]>();
  readonly #queued: QueueBytes;
  /** How many inputs interrupt what has a branch, to start in its place. */
  readonly #urgent = new Map<string, number>();
  readonly #keyed = new Map<string, { fingerprint: string; answer: Promise<InputAnswer> }>();
  readonly #over = new AbortController();
  /** Runs that don't have their branch yet. */
  #starting = 0;

  constructor(options: {
    context: Context;
    limits: { readonly runs: number; readonly queue: number };
    allowConfig: readonly AllowedConfig[];
    /** What inputs that wait take from. */
    queued: QueueBytes;
    questions: "wait" | "park";
    warn: (message: string, error: unknown) => void;
  }) {
    this.#context = options.context;
    this.#queued = options.queued;
    this.#limits = options.limits;
    this.#allowConfig = options.allowConfig;
    this.#questions = options.questions;
    this.#warn = options.warn;
  }

  /** Starts a run, or says why not; returns when the run has the branch. */
  submit(submission: Submission): Promise<InputAnswer> {
    const { body, key } = submission;
    if (key === undefined) return this.#admit(this.#prepare(submission, this.#context.ids.next()), body.ifActive);
    return this.#submitOnce(submission, key);
  }

  /** M2. */
  async #submitOnce(submission: Submission, key: string): Promise<InputAnswer> {
    const { body, ref } = submission;
    const inputId = `in-${hash(`${ref.branchId}\n${key}`).slice(0, 32)}`;
    const place = JSON.stringify([ref.sessionId, inputId]);
    const fingerprint = hash(JSON.stringify(body));
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

  /** Holds the handle of a run until it is over. */
  #track(ref: BranchRef, run: Run): void {
    const key = branchKey(ref);
    this.#active.set(key, run);
    const done = () => {
      if (this.#active.get(key) === run) this.#active.delete(key);
    };
    run.result.then(done, done);
  }

  /** The run that goes on with a turn: the one that was begun for it, or whichever was faster. */
  async takenUp(ref: BranchRef, run: Run): Promise<string | undefined> {
    try {
      await begun(run);
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

  /** Nothing that waits is started any more. Runs are the agents' to hand over. */
  close(): void {
    this.#over.abort();
    for (const queue of this.#queues.values()) for (const { bytes } of queue.splice(0)) this.#queued.give(bytes);
    this.#queues.clear();
  }

  /** Whether nothing runs, starts or waits. */
  get isIdle(): boolean {
    return this.#active.size + this.#starting + this.#queues.size + this.#urgent.size === 0;
  }

  #prepare({ agent, ref, body, identity }: Submission, inputId: string, keyed?: Prepared["keyed"]): Prepared {
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
    return { agent, ref, inputId, messages: messagesOf(body, inputId), options, ...(keyed && { keyed }) };
  }

  async #findInput(ref: BranchRef, inputId: string, fingerprint: string): Promise<InputAnswer | undefined> {
    const { messages, uncommittedTurn: open, stagedTurns, turns } = await holdBranch(this.#context, ref);
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
   * The answer, or why the branch can't be had now. What stands in the way of an input with a key may be the run of that very
   * input, which another process started: that is its answer (M2).
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

  /** Starts it and waits until it has the branch; whatever kept it from that is thrown. */
  async #start({ agent, ref, messages, options }: Prepared): Promise<string> {
    if (this.#over.signal.aborted) throw new BoughError("store_closed", "The server is closing.");
    if (this.#active.size + this.#starting >= this.#limits.runs) {
      throw new Refusal("rate_limited", "Too many runs are active.", { retryAfterMs: 1000 });
    }
    this.#starting++;
    try {
      const run = agent.run(messages, { ...options, ...ref });
      await begun(run);
      this.#track(ref, run);
      return run.runId;
    } finally {
      this.#starting--;
    }
  }

  #enqueue(queue: Queued[] | undefined, prepared: Prepared): InputAnswer {
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

  /** M3. */
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
        const admitted = await this.#tryStart(next!);
        if (!("refused" in admitted)) shift();
        else if (BoughError.is(admitted.refused, "turn_open")) await this.#untilNews(ref, admitted.refused);
        // Somebody was faster, or the store's clock knows better than ours whether the branch is free.
        else await this.#context.clock.sleep(pollMs, this.#over.signal);
      } catch (error) {
        if (error instanceof Refusal) await this.#context.clock.sleep(pollMs, this.#over.signal);
        else {
          this.#warn("An input that waited for its branch could not be started:", error);
          shift();
          if (next!.keyed) this.#keyed.delete(next!.keyed.place);
        }
      }
    }
    this.#queues.delete(key);
  }

  /** A turn that waits for an answer may do so for days: it is looked at again when something is written. */
  #untilNews(ref: BranchRef, { data }: BoughError): Promise<void> {
    return this.#context.store.watch(ref, Number(data.seq), this.#over.signal);
  }

  /** Resolves when nobody has the branch, as far as can be seen. */
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

function modeOf({ mode }: NonNullable<InputBody["output"]>): { mode?: "native" | "tool" } {
  return mode === undefined ? {} : { mode };
}

/** M4: the JSON text of what it holds. */
function sizeOf({ messages, options }: Prepared): number {
  return JSON.stringify([messages, options]).length;
}

function tooMuchQueued(of: string, { limit }: QueueBytes): Refusal {
  return new Refusal("queue_full", `The inputs of ${of} that wait may hold ${limit} bytes, and this one is too much.`, {
    limit,
  });
}

/** The first message has the input's id. Nothing, or an empty text or list, resumes. */
function messagesOf({ input }: InputBody, inputId: string): readonly NewMessage[] | undefined {
  if (input === undefined || input.length === 0) return undefined;
  const isList = typeof input !== "string" && "role" in input[0]!;
  const messages = isList
    ? (input as readonly NewMessage[])
    : [{ role: "user" as const, content: input as readonly Part[] }];
  return messages.map((message, i) => (i === 0 ? { ...message, id: inputId } : message));
}

/** Resolves when the run has its branch; whatever kept it from that is thrown. */
async function begun(run: Run): Promise<void> {
  for await (const event of run) if (event.type === "run-start") break;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
