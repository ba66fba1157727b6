// The connection of a subscription as data: in which state it is, and what each input makes of that. Nothing here waits,
// sends or knows of time; the subscription does what the state it comes to calls for.

/**
 * `idle` before it starts; `connecting` while it asks; `replaying` while it is told what it missed; `live` when what comes
 * happens now; `waiting` before it asks again; `closed` by whoever opened it; `failed` for good.
 */
export type ConnectionState = "idle" | "connecting" | "replaying" | "live" | "waiting" | "closed" | "failed";

/**
 * `start`: it is wanted. `opened`: the server answers with a stream. `ready`: all that was there is told. `advanced`: a kept
 * event was handled. `lost`: the stream was cut, ended, fell silent or was refused for now. `due`: the wait is over.
 * `refused`: asking again can't help. `close`: it is wanted no more.
 */
export type ConnectionInput = "start" | "opened" | "ready" | "advanced" | "lost" | "due" | "refused" | "close";

type Row = Readonly<Record<ConnectionInput, ConnectionState>>;

/** An input that means nothing to a state leaves it. */
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

/** Every state, every input. */
export const transitions: Readonly<Record<ConnectionState, Row>> = {
  idle: { ...stay("idle"), start: "connecting", close: "closed" },
  connecting: { ...stay("connecting"), opened: "replaying", lost: "waiting", refused: "failed", close: "closed" },
  replaying: { ...stay("replaying"), ready: "live", lost: "waiting", refused: "failed", close: "closed" },
  live: { ...stay("live"), lost: "waiting", refused: "failed", close: "closed" },
  waiting: { ...stay("waiting"), due: "connecting", refused: "failed", close: "closed" },
  closed: stay("closed"),
  failed: stay("failed"),
};

/** A connection at one moment. */
export interface ClientConnection {
  readonly state: ConnectionState;
  /** Connections lost in a row that brought nothing. */
  readonly losses: number;
  /** Why it waits, or failed. */
  readonly error?: unknown;
}

export const idleConnection: ClientConnection = { state: "idle", losses: 0 };

/** What an input makes of a connection; the same object when it changes nothing. */
export function step(connection: ClientConnection, input: ConnectionInput, error?: unknown): ClientConnection {
  const { state: from, losses } = connection;
  const state = transitions[from][input];
  if (state === "waiting" || state === "failed") {
    if (state === from) return connection;
    return { state, losses: losses + 1, ...(error !== undefined && { error }) };
  }
  // Whatever came shows that the way is open: the next loss is the first again.
  const isFruitful = state === "live" || (state === "replaying" && input === "advanced");
  const counted = isFruitful ? 0 : losses;
  return state === from && counted === losses ? connection : { state, losses: counted };
}

/** How long to wait between connections. */
export interface Backoff {
  /** Before the first attempt after a loss, at most (default 500). */
  readonly minMs: number;
  /** Before any attempt, at most (default 30,000). */
  readonly maxMs: number;
}

export const defaultBackoff: Backoff = { minMs: 500, maxMs: 30_000 };

/**
 * The wait after so many losses: doubled with each, between half and all of that by chance, so that those who lost the same
 * server don't all come back at once. Never less than the server asks for.
 */
export function delayMs(losses: number, { minMs, maxMs }: Backoff, chance: number, retryAfterMs = 0): number {
  const ceiling = Math.min(maxMs, minMs * 2 ** Math.min(losses - 1, 30));
  return Math.max(ceiling / 2, retryAfterMs) + (chance * ceiling) / 2;
}
