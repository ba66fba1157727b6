// RemoteRun: a run of a server, followed from here. The server owns the run; this owns what was heard of it.
//   RemoteRun-1. It listens before it submits, so that no event of the run is missed.
//   RemoteRun-2. It follows the turn: when the run's process dies and another one takes the turn up, the events go on.
//   RemoteRun-3. The end of the turn is a fact, so a lost connection never loses it.
//   RemoteRun-4. Events are read once. A reader that leaves ends its reading, not the run.

import type { Clock } from "../base/clock.ts";
import { BoughError, type ErrorCode } from "../base/errors.ts";
import type { BoughEvent, Fact, InteractionAnswer, Message } from "../events/index.ts";
import { textOf } from "../events/parts.ts";
import { eventMailbox } from "../live/hub.ts";
import type { BranchHandle, BranchRun, BranchRunOptions, Input, RunOutcome } from "../wire/handle.ts";
import type { InputAnswer, StateBody } from "../wire/types.ts";
import { RunFollower } from "./run-follower.ts";
import type { SubscribeOptions, Subscription } from "./subscription.ts";

/** How long the live event `run-end` is waited for after the turn's last fact. */
const endMs = 250;
/** How often a run that asked a question is looked at: parking leaves no fact. */
const parkedMs = 2_000;

type Close = Fact<"turn.committed" | "turn.staged" | "turn.ended" | "turn.discarded">;

/** What a run needs of its branch. */
export interface RunSource extends Pick<BranchHandle, "scope" | "state" | "messages" | "interrupt" | "respond"> {
  submit(input: Input | undefined, options: BranchRunOptions): Promise<InputAnswer>;
  subscribe(options: SubscribeOptions): Subscription;
}

export class RemoteRun implements BranchRun {
  readonly #branch: RunSource;
  readonly #clock: Clock;
  readonly #options: BranchRunOptions;
  readonly #mailbox = eventMailbox();
  readonly #submitted: Promise<InputAnswer>;
  readonly #result: Promise<RunOutcome>;

  /** Use `run` of a branch. */
  constructor(branch: RunSource, clock: Clock, input: Input | undefined, options: BranchRunOptions) {
    this.#branch = branch;
    this.#clock = clock;
    this.#options = options;
    const follower = new RunFollower((event) => this.#mailbox.push(event));
    this.#submitted = this.#begin(follower, input);
    this.#result = this.#follow(follower);
    this.#submitted.catch(() => {});
    this.#result.then(
      () => this.#mailbox.close(),
      (error: unknown) => this.#mailbox.close({ error }),
    );
  }

  get result(): Promise<RunOutcome> {
    return this.#result;
  }

  get textStream(): AsyncIterable<string> {
    return this.#texts();
  }

  [Symbol.asyncIterator](): AsyncIterator<BoughEvent, undefined> {
    return this.#mailbox[Symbol.asyncIterator]();
  }

  async text(): Promise<string> {
    if (!this.#mailbox.isTaken) this.#mailbox.leave();
    return answerOf(await this.#result);
  }

  async interrupt(reason?: string): Promise<void> {
    const { runId } = await this.#submitted;
    await this.#branch.interrupt({ ...(runId !== undefined && { runId }), ...(reason !== undefined && { reason }) });
    await this.#result.catch(() => {});
  }

  async respond(interactionId: string, answer: InteractionAnswer): Promise<void> {
    await this.#branch.respond(interactionId, answer);
  }

  async *#texts(): AsyncGenerator<string> {
    for await (const event of this) if (event.type === "text-delta") yield event.text;
    answerOf(await this.#result);
  }

  /** RemoteRun-1. */
  async #begin(follower: RunFollower, input: Input | undefined): Promise<InputAnswer> {
    const { signal, ...options } = this.#options;
    if (signal?.aborted) throw new BoughError("aborted", "The run was cancelled before it began.");
    const { seq, openTurn, interactions } = await this.#branch.state({ last: 1 });
    await follower.listen((wanted) => this.#branch.subscribe(wanted), seq);
    const answer = await this.#branch.submit(input, { questions: "wait", ...options });
    const isNew = input !== undefined && input.length > 0;
    const asks = interactions.map(({ id }) => id);
    follower.started(answer.runId!, isNew || !openTurn ? undefined : { turnId: openTurn.id, asks });
    signal?.addEventListener("abort", () => void this.interrupt("aborted").catch(() => {}), {
      once: true,
      signal: follower.over,
    });
    return answer;
  }

  async #follow(follower: RunFollower): Promise<RunOutcome> {
    try {
      const { runId } = await this.#submitted;
      for (;;) {
        const end = await Promise.race([follower.ended, this.#parked(follower)]);
        if (end === "parked") return await this.#parkedOutcome(runId!, follower.turnId!);
        if (end) {
          await follower.runEnd(this.#clock, endMs);
          return await this.#outcome(runId!, end);
        }
      }
    } finally {
      follower.close();
    }
  }

  /** Looks whether the run has given the branch back with a question open; nothing when it has not. */
  async #parked(follower: RunFollower): Promise<"parked" | undefined> {
    await follower.quiet(this.#clock, parkedMs);
    if (follower.over.aborted || !follower.mayBeParked) return undefined;
    const { openTurn, activeRun, interactions } = await this.#branch.state({ last: 1 });
    const isOpen = openTurn?.id === follower.turnId && activeRun === null;
    return isOpen && interactions.some(({ turnId }) => turnId === openTurn?.id) ? "parked" : undefined;
  }

  async #parkedOutcome(runId: string, turnId: string): Promise<RunOutcome> {
    const { openTurn, interactions }: StateBody = await this.#branch.state();
    const open = interactions.filter((each) => each.turnId === turnId);
    const about = { runId, turnId, ...this.#ref, iterations: 0, usage: {}, text: "" };
    return { ...about, status: "parked", reason: "asked", messages: openTurn?.messages ?? [], interactions: open };
  }

  async #outcome(runId: string, close: Close): Promise<RunOutcome> {
    const { turnId, reason } = close;
    const messages = await this.#messagesOf(turnId);
    const { iterations = 0, usage } = close.type === "turn.discarded" ? { usage: {} } : close;
    const last = messages.findLast(({ role }) => role === "assistant");
    const text = last && (close.type !== "turn.ended" || last.partial) ? textOf(last) : "";
    const about = {
      runId,
      turnId,
      ...this.#ref,
      messages,
      iterations,
      usage: (usage ?? {}) as RunOutcome["usage"],
      text,
    };
    const why = reason === undefined ? {} : { reason };
    if (close.type === "turn.ended" && close.status === "failed") {
      const { message = "The run failed.", code = "run_failed" } = close.error ?? {};
      return { ...about, ...why, status: "failed", error: new BoughError(code as ErrorCode, message) };
    }
    if (close.type === "turn.ended" || close.type === "turn.discarded") {
      return { ...about, ...why, status: "interrupted" };
    }
    const { output } = this.#options;
    return { ...about, ...why, status: "completed", ...(output && { output: outputOf(output.mode, messages, text) }) };
  }

  async #messagesOf(turnId: string): Promise<readonly Message[]> {
    let found: Message[] = [];
    let before: string | undefined;
    for (;;) {
      const page = await this.#branch.messages(before === undefined ? {} : { before });
      found = [...page.messages.filter((message) => message.turnId === turnId), ...found];
      before = page.before;
      // Once the turn was seen, a message of another turn is before its beginning.
      const isWhole = found.length > 0 && page.messages[0]?.turnId !== turnId;
      if (before === undefined || isWhole) return found;
    }
  }

  get #ref() {
    const { sessionId, branchId } = this.#branch.scope;
    return { sessionId, branchId };
  }
}

/** The answer of a run that has one; otherwise throws why it has none. */
function answerOf(outcome: RunOutcome): string {
  if (outcome.status === "completed") return outcome.text;
  if (outcome.status === "failed") throw outcome.error;
  throw new BoughError("aborted", `The run was ${outcome.status}: ${outcome.reason}.`);
}

/** The server checked the output: it is the answer's text, or the input of the call that gave it. */
function outputOf(mode: "native" | "tool" | undefined, messages: readonly Message[], text: string): unknown {
  if (mode !== "tool") return JSON.parse(text);
  const last = messages.findLast(({ role }) => role === "assistant");
  const calls = typeof last?.content === "object" ? last.content : [];
  return calls.find((part) => part.type === "tool-call")?.input;
}
