// Requests: how a question reaches the server and a refusal becomes an error. One that may be repeated without harm is,
// when no answer came or the server says later.

import { readPieces, streamPieces } from "../base/byte-stream.ts";
import type { Clock } from "../base/clock.ts";
import type { Upload } from "../wire/handle.ts";
import { type Backoff, delayMs } from "./connection.ts";
import { isRemoteError, RemoteError, refusalOf } from "./errors.ts";
import { SourceError, type Uploader } from "./upload.ts";

export interface HttpOptions {
  readonly url: string;
  readonly token: string | (() => string | Promise<string>) | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly fetch: typeof fetch;
  readonly upload: Uploader;
  readonly clock: Clock;
  readonly random: () => number;
  readonly backoff: Backoff;
  readonly timeoutMs: number;
}

export interface RequestOptions {
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent as they are. */
  readonly bytes?: Upload;
  /** Called with the number of `bytes` that were sent so far. */
  readonly onProgress?: (bytes: number) => void;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** Whether asking twice is as good as once (default for GET). */
  readonly isRepeatable?: boolean;
  /** Whether a model may have to speak before the answer comes. */
  readonly asksModel?: boolean;
}

type Method = "GET" | "POST" | "PATCH" | "PUT" | "DELETE";

/** How often a request is made before its failure is the caller's. */
const attempts = 4;
/** How many timeouts an answer may take for which a model has to speak, perhaps more than once. */
const modelPatience = 5;

export class Http {
  readonly #options: HttpOptions;

  constructor(options: HttpOptions) {
    this.#options = options;
  }

  /** The answer's JSON; a refusal is thrown. */
  async json<T>(method: Method, path: string, options: RequestOptions = {}): Promise<T> {
    const ask = async (signal: AbortSignal) => {
      const response = await this.send(method, path, { ...options, signal });
      if (response.status === 204) return undefined as T;
      // A body that breaks off is no answer either.
      return (await response.json().catch(rejectAs(signal))) as T;
    };
    return this.#repeat(method, options, () => this.#inTime(options, ask));
  }

  /** The answer's bytes. */
  async bytes(path: string, options: RequestOptions = {}): Promise<Blob> {
    return this.#repeat("GET", options, async () =>
      (await this.send("GET", path, options)).blob().catch(rejectAs(options.signal)),
    );
  }

  /** The same, as they come. A request without an answer is repeated; an answer that breaks off is not. */
  async stream(path: string, options: RequestOptions = {}): Promise<ReadableStream<Uint8Array>> {
    const { body } = await this.#repeat("GET", options, () => this.send("GET", path, options));
    return streamPieces(body ? untilBroken(body, rejectAs(options.signal)) : nothing());
  }

  /** The answer itself, when it is no refusal. */
  async send(method: Method, path: string, options: RequestOptions = {}): Promise<Response> {
    const { query = {}, body, bytes, headers: more, signal, onProgress } = options;
    const url = this.urlOf(path, query);
    const headers = {
      ...(body !== undefined && { "content-type": "application/json" }),
      ...(await this.#credentials()),
      ...this.#options.headers,
      ...more,
    };
    const init = { method, headers, ...(signal && { signal }) };
    const asked = bytes
      ? this.#options.upload(url, { ...init, bytes, ...(onProgress && { onProgress }) })
      : this.#options.fetch(url, { ...init, ...(body !== undefined && { body: JSON.stringify(body) }) });
    const answer = await asked.catch(rejectAs(signal));
    if (answer.ok) return answer;
    throw await refusalOf(answer);
  }

  urlOf(path: string, query: RequestOptions["query"] = {}): string {
    const given = Object.entries(query).filter(([, value]) => value !== undefined);
    const search = new URLSearchParams(
      given.map(([name, value]) => [name, String(value)] as [string, string]),
    ).toString();
    return `${this.#options.url.replace(/\/+$/, "")}${path}${search && `?${search}`}`;
  }

  async token(): Promise<string | undefined> {
    const { token } = this.#options;
    return typeof token === "function" ? token() : token;
  }

  async #credentials(): Promise<Record<string, string>> {
    const token = await this.token();
    return token === undefined ? {} : { authorization: `Bearer ${token}` };
  }

  async #repeat<T>(method: Method, options: RequestOptions, ask: () => Promise<T>): Promise<T> {
    const { isRepeatable = method === "GET", signal } = options;
    const { clock, random, backoff } = this.#options;
    for (let tries = 1; ; tries++) {
      try {
        return await ask();
      } catch (error) {
        const canHelp = isRemoteError(error) && error.retryable && error.code !== "queue_full";
        if (!canHelp || !isRepeatable || tries === attempts || signal?.aborted) throw error;
        await clock.sleep(delayMs(tries, backoff, random(), error.retryAfterMs), signal);
        if (signal?.aborted) throw signal.reason;
      }
    }
  }

  /** A connection that fell silent is as good as none. Uploads take the time they take. */
  async #inTime<T>({ signal, bytes, asksModel }: RequestOptions, ask: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { clock } = this.#options;
    const timeoutMs = this.#options.timeoutMs * (asksModel ? modelPatience : 1);
    const over = new AbortController();
    const asked = new AbortController();
    const abort = () => asked.abort(signal?.reason);
    signal?.addEventListener("abort", abort, { once: true, signal: over.signal });
    if (signal?.aborted) abort();
    const late = () => asked.abort(unreachable(`nothing came for ${timeoutMs} ms`));
    if (!bytes) void clock.sleep(timeoutMs, over.signal).then(() => over.signal.aborted || late());
    try {
      return await ask(asked.signal);
    } finally {
      over.abort();
    }
  }
}

/** An aborted request has the caller's reason; any other failure means that the server was not reached. */
function rejectAs(signal: AbortSignal | undefined): (error: unknown) => never {
  return (error) => {
    if (signal?.aborted) throw signal.reason;
    throw error instanceof SourceError ? error.cause : unreachable(error);
  };
}

async function* untilBroken(
  body: ReadableStream<Uint8Array>,
  reject: (error: unknown) => never,
): AsyncGenerator<Uint8Array, void> {
  try {
    yield* readPieces(body);
  } catch (error) {
    reject(error);
  }
}

async function* nothing(): AsyncGenerator<never, void> {}

function unreachable(cause: unknown): RemoteError {
  const why = cause instanceof Error ? reasonOf(cause) : String(cause);
  return new RemoteError("unreachable", `The server could not be reached: ${why}.`, { cause });
}

/** Node's fetch only says that it failed, and its cause why; that of several addresses has a code and no message. */
function reasonOf({ message, cause }: Error): string {
  const { message: why, code } = (cause ?? {}) as { message?: string; code?: string };
  return why || code || message;
}

/** A path with its ids encoded. */
export function path(parts: TemplateStringsArray, ...ids: string[]): string {
  return parts.map((part, i) => (i === 0 ? part : encodeURIComponent(ids[i - 1]!) + part)).join("");
}
