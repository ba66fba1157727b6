// Socket: one WebSocket connection, independent of the library. It sends the frames of the branch's stream, and receives inputs,
// interrupts and responses.
//   Socket-1. A client's frames are handled one after the other; each valid one gets one reply.
//   Socket-2. The client's access is checked for every frame, and at every heartbeat.
//   Socket-3. A connection that reads nothing for a whole heartbeat, or answers no ping, is dropped.

import {
  type ClientFrame,
  clientFrameSchema,
  closeCodes,
  type Frame,
  heartbeatFrame,
  type ReplyFrame,
  routes,
} from "../wire/index.ts";
import type { Attempt } from "./attempt.ts";
import type { Identity } from "./auth.ts";
import { parse, parseJson } from "./body.ts";
import type { HeldBytes } from "./bytes.ts";
import type { Exchange, Held } from "./exchange.ts";
import { eventsOf } from "./handlers/live.ts";
import { interrupt, respond, submit } from "./handlers/runs.ts";
import type { Beating } from "./heartbeats.ts";
import type { Reader } from "./reader.ts";
import { problemOf } from "./refusal.ts";

/** The library's side of a connection. */
export interface SocketEnd {
  /** Resolves when the text was written to the connection. */
  send(text: string): Promise<void>;
  close(code: number, reason: string): void;
  /** Drops the connection without a close frame. */
  destroy(): void;
  /** Sends a ping. */
  ping(): void;
}

export interface SocketOptions {
  readonly exchange: Exchange;
  readonly held: Held;
  readonly after: number;
  readonly connection: SocketEnd;
  /** The request that opened it. */
  readonly attempt: Attempt;
  /** Counts a frame as a request and authorises it; throws if it is refused. */
  readonly permit: (frame: Attempt) => Promise<void>;
  /** Called with a frame's outcome. */
  readonly record: (frame: Attempt, status: number) => void;
}

/** How many frames of a client may be queued. */
const waitingFrames = 64;

export class Socket implements Beating {
  readonly #options: SocketOptions;
  readonly #stopBeating: () => void;
  #reader: Reader | undefined;
  #isGone = false;
  #isSending = false;
  /** How many frames were sent, and how many at the last heartbeat. */
  #sent = 0;
  #sentBefore = 0;
  #isAlive = true;
  #waiting = 0;
  #work = Promise.resolve();

  constructor(options: SocketOptions) {
    this.#options = options;
    this.#stopBeating = options.exchange.tenant.heart.add(this);
    void this.#stream();
  }

  /** Takes a text frame of the client. */
  message(text: string): void {
    this.#isAlive = true;
    const held = this.#admit(text);
    if (!held) {
      this.#options.connection.close(closeCodes.refused, "rate_limited");
      return;
    }
    this.#waiting++;
    this.#work = this.#work.then(async () => {
      await this.#receive(text);
      this.#waiting--;
      held.release();
    });
  }

  /** Reserves bytes for a queued frame, if available. */
  #admit(text: string): HeldBytes | undefined {
    if (this.#waiting >= waitingFrames) return undefined;
    const held = this.#options.exchange.holdBytes();
    try {
      held.take(text.length);
      return held;
    } catch {
      return undefined;
    }
  }

  /** The client answered a ping. */
  pong(): void {
    this.#isAlive = true;
  }

  /** The connection was closed. */
  closed(): void {
    this.#stopBeating();
    this.#isGone = true;
    this.#reader?.leave();
    this.#options.held.done();
  }

  /** Socket-2, Socket-3. */
  async beat(): Promise<void> {
    const { connection, held } = this.#options;
    const isStill = this.#sent === this.#sentBefore;
    const isStuck = this.#isSending && isStill;
    const isQuiet = !this.#isSending && isStill;
    this.#sentBefore = this.#sent;
    // A client that is reading frames may not have reached the ping behind them yet.
    if (isStuck || !(this.#isAlive || this.#isSending)) return connection.destroy();
    this.#isAlive = false;
    connection.ping();
    if (!(await held.identity())) this.#reader?.end("unauthorized");
    // A connection that is gone is noticed by its end.
    else if (isQuiet) await connection.send(heartbeatFrame).catch(() => {});
  }

  async #stream(): Promise<void> {
    const { exchange, after, connection } = this.#options;
    const { bufferBytes } = exchange.limits;
    let last: Frame | undefined;
    try {
      const reader = await exchange.tenant.feeds.open(exchange.ref, after, {
        bufferBytes,
        events: eventsOf(exchange),
      });
      this.#reader = reader;
      if (this.#isGone) reader.leave();
      for (let batch = await reader.next(); batch; batch = await reader.next()) {
        for (const { json } of batch) await this.#send(json);
        last = batch.at(-1)!.frame;
      }
      if (!this.#isGone) connection.close(...closingOf(last));
    } catch (error) {
      const problem = { ...problemOf(error), requestId: this.#options.attempt.requestId };
      await this.#send(JSON.stringify({ type: "reset", problem } satisfies Frame)).catch(() => {});
      connection.close(closeCodes.refused, problem.code);
    } finally {
      this.closed();
    }
  }

  async #send(text: string): Promise<void> {
    this.#isSending = true;
    await this.#options.connection.send(text);
    this.#isSending = false;
    this.#sent++;
  }

  /** Socket-1. */
  async #receive(text: string): Promise<void> {
    const { exchange, held, connection } = this.#options;
    let frame: ClientFrame;
    try {
      frame = parse(clientFrameSchema, parseJson(text, exchange.limits.depth));
    } catch {
      return connection.close(closeCodes.badFrame, "invalid_argument");
    }
    const identity = await held.identity();
    if (!identity) return connection.close(closeCodes.refused, "unauthorized");
    const reply = await this.#answer(exchange, identity, frame);
    await connection.send(JSON.stringify(reply)).catch(() => {});
  }

  /** Handles a frame like the route of the same name. */
  async #answer(exchange: Exchange, identity: Identity, frame: ClientFrame): Promise<ReplyFrame> {
    const { attempt, permit, record } = this.#options;
    const doing = attempt.frame(actions[frame.type], identity, frame);
    const { requestId } = doing;
    const reply = (status: number, body: unknown): ReplyFrame => {
      record(doing, status);
      return { type: "reply", ...(frame.id !== undefined && { id: frame.id }), requestId, status, body };
    };
    try {
      await permit(doing);
      doing.result = await perform(exchange, identity, frame);
      return reply(routes[actions[frame.type]].status, doing.result);
    } catch (error) {
      const problem = problemOf(error);
      doing.code = problem.code;
      return reply(problem.status, { ...problem, requestId });
    }
  }
}

/** The handlers of frames, by the name of their route. */
const actions = { input: "submitInput", interrupt: "interrupt", response: "respond" } as const;

async function perform(exchange: Exchange, identity: Identity, frame: ClientFrame): Promise<unknown> {
  if (frame.type === "input") {
    const { type: _type, id: _id, key, ...body } = frame;
    return submit(exchange, identity, body, key);
  }
  if (frame.type === "interrupt") {
    const { type: _type, id: _id, ...body } = frame;
    return interrupt(exchange, body);
  }
  const { interactionId, answer } = frame;
  return respond(exchange, identity, { interactionId, answer });
}

/** The close code for a stream that ended with this frame. */
function closingOf(last: Frame | undefined): [code: number, reason: string] {
  if (last?.type === "reset") return [closeCodes.refused, "reset"];
  if (last?.type !== "end") return [closeCodes.normal, ""];
  if (last.reason === "slow") return [closeCodes.tryLater, "slow"];
  return last.reason === "unauthorized" ? [closeCodes.refused, last.reason] : [closeCodes.goingAway, last.reason];
}
