// Bucket: signed requests to one bucket, made again when that can help.
//   Bucket-1. A request is made again after a broken connection, silence, or an answer that asks for it; never after a refusal.
//   Bucket-2. Errors name what was asked and what the service answered, never a credential or a signature.

import { createHash } from "node:crypto";
import type { AwsV4Signer } from "aws4fetch";
import { alarm, type Clock } from "../../base/clock.ts";
import { BoughError } from "../../base/errors.ts";
import { fieldOf } from "./xml.ts";

/** The keys of an account that may use the bucket. */
export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

export interface BucketOptions {
  /** The address of the bucket, without a slash at its end. */
  readonly address: string;
  readonly region: string;
  readonly credentials: () => Promise<S3Credentials>;
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly attempts: number;
}

export interface BucketRequest {
  readonly method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE";
  /** The object; none for the bucket itself. */
  readonly name?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array<ArrayBuffer> | string;
  /** Answers beside 2xx that the caller deals with. */
  readonly expects?: readonly number[];
}

/** What the service says when trying again can help. */
const passing: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504]);
const longestPauseMs = 20_000;
const emptyHash = createHash("sha256").digest("hex");

export class Bucket {
  readonly #options: BucketOptions;
  readonly #keys = new Map<string, ArrayBuffer>();
  #signer: Promise<typeof AwsV4Signer> | undefined;

  constructor(options: BucketOptions) {
    this.#options = options;
  }

  /** The answer, whose body has to be read or cancelled. Anything but 2xx and what is expected is thrown. */
  async request(request: BucketRequest): Promise<Response> {
    const { clock, attempts } = this.#options;
    for (let attempt = 1; ; attempt++) {
      const answer = await this.#once(request).catch((error: unknown) => ({ error }));
      if (!("error" in answer)) {
        if (answer.ok || request.expects?.includes(answer.status)) return answer;
        const refusal = await this.#refusal(request, answer);
        if (!refusal.retryable || attempt >= attempts) throw refusal;
      } else if (BoughError.is(answer.error) || attempt >= attempts) {
        throw BoughError.is(answer.error) ? answer.error : this.#unreachable(request, answer.error);
      }
      await clock.sleep(pauseMs(attempt));
    }
  }

  /** The same, with the body as a text. A body that breaks off is asked for again. */
  async text(request: BucketRequest): Promise<{ answer: Response; text: string }> {
    const { clock, attempts } = this.#options;
    for (let attempt = 1; ; attempt++) {
      const answer = await this.request(request);
      try {
        return { answer, text: await answer.text() };
      } catch (cause) {
        if (attempt >= attempts) throw this.#unreachable(request, cause);
        await clock.sleep(pauseMs(attempt));
      }
    }
  }

  /** The pieces of a body; rejects when it breaks off, or when nothing comes for too long. */
  async *pieces(answer: Response): AsyncGenerator<Uint8Array> {
    const reader = answer.body?.getReader();
    if (!reader) return;
    const { clock, timeoutMs } = this.#options;
    let isDone = false;
    try {
      for (;;) {
        let cancel = () => {};
        const silence = new Promise<never>((_, reject) => {
          cancel = alarm(clock, timeoutMs, () => reject(new Error(`Nothing came for ${timeoutMs} ms.`)));
        });
        const next = await Promise.race([reader.read(), silence]).finally(() => cancel());
        isDone = next.done;
        if (next.done) return;
        yield next.value;
      }
    } finally {
      if (!isDone) await reader.cancel().catch(() => {});
    }
  }

  /** A signed address for a GET by others, valid for so many seconds from `signedAt` on. */
  async signUrl(name: string, query: Readonly<Record<string, string>>, signedAt: number): Promise<string> {
    const signed = await this.#sign({ method: "GET", name, query }, { at: signedAt, inQuery: true });
    return signed.url.href;
  }

  async #once(request: BucketRequest): Promise<Response> {
    const { clock, timeoutMs } = this.#options;
    const signed = await this.#sign(request, { at: clock.now(), inQuery: false });
    const silence = new AbortController();
    const cancel = alarm(clock, timeoutMs, () => silence.abort(new Error(`No answer came for ${timeoutMs} ms.`)));
    try {
      const { method, headers } = signed;
      const body = request.body === undefined ? {} : { body: request.body };
      return await fetch(signed.url, { method, headers, signal: silence.signal, redirect: "manual", ...body });
    } finally {
      cancel();
    }
  }

  async #sign({ method, name, query = {}, headers = {}, body }: BucketRequest, how: { at: number; inQuery: boolean }) {
    const { address, region, credentials } = this.#options;
    this.#signer ??= loadSigner();
    const Signer = await this.#signer;
    const { accessKeyId, secretAccessKey, sessionToken } = await credentials();
    const url = new URL(name === undefined ? `${address}/` : `${address}/${name}`);
    for (const [key, value] of Object.entries(query)) url.searchParams.set(key, value);
    const hash = body === undefined ? emptyHash : createHash("sha256").update(body).digest("hex");
    const signer = new Signer({
      ...{ method, accessKeyId, secretAccessKey, region, service: "s3", url: url.href, cache: this.#keys },
      ...(sessionToken !== undefined && { sessionToken }),
      headers: how.inQuery ? {} : { ...headers, "x-amz-content-sha256": hash },
      datetime: new Date(how.at).toISOString().replace(/[:-]|\.\d{3}/g, ""),
      signQuery: how.inQuery,
    });
    return signer.sign();
  }

  async #refusal(request: BucketRequest, answer: Response): Promise<BoughError> {
    const said = await answer.text().catch(() => "");
    const code = fieldOf(said, "Code") ?? "";
    const why = [code, fieldOf(said, "Message")].filter(Boolean).join(": ").slice(0, 500);
    const sentence = `The object store answered ${request.method} with ${answer.status}${why && ` (${why})`}.`;
    const retryable = passing.has(answer.status) || code === "RequestTimeout" || code === "SlowDown";
    return new BoughError("store_unavailable", sentence, { data: { status: answer.status, code }, retryable });
  }

  #unreachable({ method }: BucketRequest, cause: unknown): BoughError {
    const why = cause instanceof Error ? ((cause.cause as Error | undefined)?.message ?? cause.message) : String(cause);
    return new BoughError("store_unavailable", `The object store can't be reached for ${method}: ${why}`, {
      cause,
      retryable: true,
    });
  }
}

/** Exponential from 100 ms, drawn from the whole interval, so that many that failed together don't come back together. */
export function pauseMs(attempt: number): number {
  return Math.random() * Math.min(longestPauseMs, 100 * 2 ** attempt);
}

async function loadSigner(): Promise<typeof AwsV4Signer> {
  try {
    return (await import("aws4fetch")).AwsV4Signer;
  } catch (cause) {
    const sentence = "Keeping content in S3 needs the package aws4fetch: npm install aws4fetch";
    throw new BoughError("dependency_missing", sentence, { cause });
  }
}
