// The connection of a subscription as a state machine: its states, its inputs and a total transition table. It performs no
// effects; the subscription performs those that a state calls for.

/**
 * `idle`: not started. `connecting`: the request is sent. `replaying`: past events arrive. `live`: new events arrive as they
 * happen. `waiting`: the delay before a reconnection. `closed`: by the subscriber. `failed`: permanently.
 */
export type ConnectionState = "idle" | "connecting" | "replaying" | "live" | "waiting" | "closed" | "failed";

/**
 * `start`: the subscription begins. `opened`: the server responds with a stream. `ready`: all past events have arrived.
 * `advanced`: a kept event was handled. `lost`: the stream was cut, ended, timed out or was refused temporarily. `due`: the
 * delay is over. `refused`: a retry can't help. `close`: the subscriber closes it.
 */
export type ConnectionInput = "start" | "opened" | "ready" | "advanced" | "lost" | "due" | "refused" | "close";

type Row = Readonly<Record<ConnectionInput, ConnectionState>>;

/** An input without a meaning in a state changes nothing. */
const stay = (state: ConnectionState): Row => ({
  start: state,
  opened: state,
  ready: state,
  advanced: state,
  lost: state,
  due: state,
  refused: state,
  close: state,
});

/** Every state with every input. */
export const transitions: Readonly<Record<ConnectionState, Row>> = {
  idle: { ...stay("idle"), start: "connecting", close: "closed" },
  connecting: { ...stay("connecting"), opened: "replaying", lost: "waiting", refused: "failed", close: "closed" },
  replaying: { ...stay("replaying"), ready: "live", lost: "waiting", refused: "failed", close: "closed" },
  live: { ...stay("live"), lost: "waiting", refused: "failed", close: "closed" },
  waiting: { ...stay("waiting"), due: "connecting", refused: "failed", close: "closed" },
  closed: stay("closed"),
  failed: stay("failed"),
};

/** The state of a subscription's connection. */
export interface ClientConnection {
  readonly state: ConnectionState;
  /** Consecutive connections that were lost without delivering an event. */
  readonly losses: number;
  /** Why it is waiting, or has failed. */
  readonly error?: unknown;
}

export const idleConnection: ClientConnection = { state: "idle", losses: 0 };

/** Applies an input to a connection; returns the same object if nothing changes. */
export function step(connection: ClientConnection, input: ConnectionInput, error?: unknown): ClientConnection {
  const { state: from, losses } = connection;
  const state = transitions[from][input];
  if (state === "waiting" || state === "failed") {
    if (state === from) return connection;
    return { state, losses: losses + 1, ...(error !== undefined && { error }) };
  }
  // Something arrived, so the count of losses starts again.
  const isFruitful = state === "live" || (state === "replaying" && input === "advanced");
  const counted = isFruitful ? 0 : losses;
  return state === from && counted === losses ? connection : { state, losses: counted };
}

/** Delays between connections. */
export interface Backoff {
  /** The maximum delay before the first attempt after a loss (default 500). */
  readonly minMs: number;
  /** The maximum delay before any attempt (default 30,000). */
  readonly maxMs: number;
}

export const defaultBackoff: Backoff = { minMs: 500, maxMs: 30_000 };

/**
 * The delay after this many losses: exponential, with up to 50 % jitter, so that the clients of a lost server don't all
 * reconnect at once. Never less than the server asks for.
 */
export function delayMs(losses: number, { minMs, maxMs }: Backoff, chance: number, retryAfterMs = 0): number {
  const ceiling = Math.min(maxMs, minMs * 2 ** Math.min(losses - 1, 30));
  return Math.max(ceiling / 2, retryAfterMs) + (chance * ceiling) / 2;
}
