// Submissions: the runs that clients requested from this process, and how their inputs are queued.
//   Submissions-1. The store decides which run has a branch, and the log holds queued inputs; this class holds only handles.
//   Submissions-2. An input with an idempotency key starts at most one turn: its first message, or the input in the queue, has an id
//       derived from the key, which a log accepts once, from whichever process and however often.
//   Submissions-3. Queued inputs of a branch start in the order of arrival, after those that interrupt.
//   Submissions-4. The queue is bounded by number per branch, and by bytes per tenant and process.

import { submitterOf } from "../agent/agent.ts";
import type { Agent } from "../agent/index.ts";
import { isBusy } from "../agent/submitter.ts";
import { BoughError } from "../base/errors.ts";
import type { Identity } from "../base/identity.ts";
import type { JsonObject } from "../base/json.ts";
import { sha256Hex } from "../base/sha256.ts";
import type { Fact, NewMessage, Part, UnknownFact } from "../events/index.ts";
import { branchKey } from "../log/branch-key.ts";
import type { BranchRef } from "../log/store.ts";
import type { Run, RunOptions } from "../runs/index.ts";
import { readBranch } from "../sessions/branches.ts";
import type { Context } from "../sessions/context.ts";
import { readEvents } from "../sessions/history.ts";
import { checkedBySchema } from "../tools/index.ts";
import type { InputAnswer, InputBody, InterruptAnswer, InterruptBody } from "../wire/index.ts";
import { type AllowedConfig, clientConfig } from "./client-config.ts";
import { CountedInputs, type QueueBytes } from "./queue-bytes.ts";
import { Refusal } from "./refusal.ts";

export interface Submission {
  readonly agent: Agent;
  readonly ref: BranchRef;
  readonly body: InputBody;
  /** The caller. */
  readonly identity: Identity;
  /** The idempotency key. */
  readonly key?: string;
}

interface Prepared {
  readonly agent: Agent;
  readonly ref: BranchRef;
  readonly inputId: string;
  readonly messages: readonly NewMessage[] | undefined;
  /** The options of the run. */
  readonly options: RunOptions;
  /** Of an input with a key. */
  readonly keyed?: { readonly place: string; readonly fingerprint: string };
}

const rememberedKeys = 10_000;
/** Long enough for a client on a slow network, short enough not to hold resources for long. */
export const clientGraceMs = 5_000;

/** The run options that a server sets. */
function asking(questions: "wait" | "park"): Pick<RunOptions, "questions" | "clientGraceMs"> {
  return { questions, clientGraceMs };
}

export class Submissions {
  readonly #context: Context;
  readonly #limits: { readonly runs: number; readonly queue: number };
  readonly #allowConfig: readonly AllowedConfig[];
  readonly #questions: "wait" | "park";
  readonly #active = new Map<string, Run>();
  readonly #queued: CountedInputs;
  readonly #keyed = new Map<string, { fingerprint: string; answer: Promise<InputAnswer> }>();
  #isClosed = false;
  /** Runs that don't have their branch yet. */
  #starting = 0;

  constructor(options: {
    context: Context;
    limits: { readonly runs: number; readonly queue: number };
    allowConfig: readonly AllowedConfig[];
    /** The budget of queued inputs. */
    queued: QueueBytes;
    questions: "wait" | "park";
  }) {
    this.#context = options.context;
    this.#queued = new CountedInputs(options.context, options.queued);
    this.#limits = options.limits;
    this.#allowConfig = options.allowConfig;
    this.#questions = options.questions;
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

  #keep(ref: BranchRef, run: Run): void {
    run.discardEvents();
    this.#track(ref, run);
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

  /** Accepts no more inputs. The agents hand their runs over; what is queued stays in the log. */
  close(): void {
    this.#isClosed = true;
    this.#queued.close();
  }

  /** Whether nothing is running or starting. */
  get isIdle(): boolean {
    return this.#active.size + this.#starting === 0;
  }

  /** Counts the runs that take queued inputs among the active ones. */
  listenTo(agent: Agent): void {
    const { taker } = submitterOf(agent);
    taker.runOptions = { clientGraceMs };
    taker.onTake((ref, run) => this.#track(ref, run));
  }

  #prepare({ agent, ref, body, identity }: Submission, inputId: string, keyed?: Prepared["keyed"]): Prepared {
    const config = clientConfig(body.config, this.#allowConfig, agent);
    const { output, context } = body;
    const metadata: JsonObject = { ...body.metadata, ...(keyed && { [fingerprintKey(inputId)]: keyed.fingerprint }) };
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

  /** Submissions-2: what became of an input that came before, from whichever process. */
  async #findInput(ref: BranchRef, inputId: string, fingerprint: string): Promise<InputAnswer | undefined> {
    const { messages, uncommittedTurn: open, stagedTurns, turns, queue } = await readBranch(this.#context, ref);
    const waiting = queue.find(({ id }) => id === inputId);
    if (waiting) return isSame(waiting, inputId, fingerprint, { inputId, status: "queued" });
    const unclosed = [...stagedTurns, ...(open ? [open] : [])];
    const all = [...messages, ...unclosed.flatMap((turn) => turn.messages)];
    const message = all.findLast((each) => each.id === inputId || each.inputId === inputId);
    if (!message) return undefined;
    const from = [...turns, ...unclosed].find(({ id }) => id === message.turnId)?.from ?? 1;
    const [begun] = await readEvents(this.#context, ref, { after: from - 1, limit: 1 });
    if (begun?.type !== "turn.started") return undefined;
    const { runId } = begun;
    const answer = { inputId, status: "started", ...(runId !== undefined && { runId }) } as const;
    // What steered a turn came with a body that only its own fact has.
    const queued = message.inputId === undefined ? undefined : await this.#queuedFact(ref, inputId, from);
    return isSame(queued ?? begun, inputId, fingerprint, answer);
  }

  /** The fact that queued an input, which may stand long before the turn that took it. */
  async #queuedFact(ref: BranchRef, inputId: string, from: number): Promise<Fact<"input.queued"> | undefined> {
    const find = (facts: readonly (Fact | UnknownFact)[]) =>
      facts.find((fact): fact is Fact<"input.queued"> => fact.type === "input.queued" && fact.id === inputId);
    const { journal } = this.#context;
    const later = find((await journal.read(ref, { after: from - 1 })).facts);
    if (later) return later;
    for (let before = from; before > 1; ) {
      const { facts } = await journal.read(ref, { before, reverse: true });
      const found = find(facts);
      if (found || facts.length === 0) return found;
      before = facts.at(-1)!.seq;
    }
    return undefined;
  }

  async #admit(prepared: Prepared, ifActive: InputBody["ifActive"] = "reject"): Promise<InputAnswer> {
    const { inputId, ref, keyed, messages } = prepared;
    if (this.#isClosed) throw new BoughError("store_closed", "The server is closing.");
    try {
      if (!messages || ifActive === "reject" || ifActive === "interrupt") return await this.#start(prepared, ifActive);
      return await this.#startOrQueue(prepared, messages, ifActive);
    } catch (error) {
      // What blocks an input with a key may be that very input, accepted by another process (Submissions-2).
      const isTaken = isBusy(error) || BoughError.is(error, "event_conflict");
      const earlier = keyed && isTaken ? await this.#findInput(ref, inputId, keyed.fingerprint) : undefined;
      if (earlier) return earlier;
      throw error;
    }
  }

  async #startOrQueue(
    prepared: Prepared,
    messages: readonly NewMessage[],
    ifActive: "queue" | "steer",
  ): Promise<InputAnswer> {
    const { inputId, ref, keyed } = prepared;
    if (!this.#isFull || !(await this.#hasTurn(ref))) {
      try {
        return await this.#start(prepared, ifActive);
      } catch (error) {
        if (!isBusy(error)) throw error;
      }
    }
    await this.#enqueue(prepared, messages, ifActive === "steer" ? "steer" : "idle");
    const earlier = keyed && (await this.#findInput(ref, inputId, keyed.fingerprint));
    return earlier ?? { inputId, status: "queued" };
  }

  get #isFull(): boolean {
    return this.#active.size + this.#starting >= this.#limits.runs;
  }

  /** A tenant that has as many runs as it may can still queue inputs behind them. */
  async #hasTurn(ref: BranchRef): Promise<boolean> {
    const { open } = (await this.#context.views.loadForRun(ref)).view;
    return open !== null;
  }

  /** Starts a run and waits until it has the branch; throws if it can't get it. */
  async #start(
    { agent, inputId, ref, messages, options }: Prepared,
    ifActive: InputBody["ifActive"],
  ): Promise<InputAnswer> {
    if (this.#isFull) {
      throw new Refusal("rate_limited", "Too many runs are active. Try again later.", { retryAfterMs: 1000 });
    }
    this.#starting++;
    try {
      const submitter = submitterOf(agent);
      const where = { ...options, ...ref };
      if (ifActive === "interrupt") {
        const { run, runId } = await submitter.replace(messages, where, inputId);
        if (run) this.#keep(ref, run);
        return { inputId, status: "started", ...(runId !== undefined && { runId }) };
      }
      const isFree = messages !== undefined && (ifActive === "queue" || ifActive === "steer");
      const run = await submitter.start(messages, where, { isFree });
      this.#keep(ref, run);
      return { inputId, status: "started", runId: run.runId };
    } finally {
      this.#starting--;
    }
  }

  /** Submissions-3, Submissions-4. */
  async #enqueue(
    { agent, inputId, ref, options }: Prepared,
    messages: readonly NewMessage[],
    when: "idle" | "steer",
  ): Promise<void> {
    const full = await this.#queued.take(ref, inputId, JSON.stringify([messages, options]).length);
    if (full) throw tooMuchQueued(this.#queued.isOwn(full) ? "this tenant" : "all tenants", full);
    const request = { inputId, when, limit: this.#limits.queue };
    try {
      const { isNew } = await submitterOf(agent).queue(messages, { ...options, ...ref }, request);
      if (!isNew) this.#queued.give(ref, inputId);
    } catch (error) {
      this.#queued.give(ref, inputId);
      throw error;
    }
  }
}

/** The answer, if what came before under the key was the same. */
function isSame(
  { metadata }: { readonly metadata?: JsonObject | undefined },
  inputId: string,
  fingerprint: string,
  answer: InputAnswer,
): InputAnswer {
  if (metadata?.[fingerprintKey(inputId)] !== fingerprint) throw new Refusal("idempotency_conflict");
  return answer;
}

/** By input, because one turn may take several. */
function fingerprintKey(inputId: string): string {
  return `fingerprint:${inputId}`;
}

function modeOf({ mode }: NonNullable<InputBody["output"]>): { mode?: "native" | "tool" } {
  return mode === undefined ? {} : { mode };
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
