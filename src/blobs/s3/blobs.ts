// The bytes of content in a bucket of S3, or of a service that speaks its protocol (R2, MinIO, Ceph …). Survives what the bucket
// survives: bytes are durable when the service has acknowledged them.

import { type Clock, systemClock } from "../../base/clock.ts";
import { BoughError } from "../../base/errors.ts";
import { anything, checkOptions, flag, number, optionTable, text } from "../../base/options.ts";
import type { BlobPlace, Blobs, BlobWriter } from "../../log/blobs.ts";
import { type ByteRange, type ContentUrl, type ContentUrlOptions, largestPiece } from "../../log/content.ts";
import { refuse } from "../../log/refusals.ts";
import { Bucket, pauseMs, type S3Credentials } from "./bucket.ts";
import { nameOf, placeOf } from "./names.ts";
import { Spool } from "./spool.ts";
import { digestNote, partBytes, removeParts, send } from "./upload.ts";
import { blocksOf, fieldOf } from "./xml.ts";

export type { S3Credentials } from "./bucket.ts";

/** Which bucket, and how it is used. */
export interface S3Options {
  readonly bucket: string;
  /** Default `us-east-1`; services that have no regions take `auto`. */
  readonly region?: string;
  /** The address of the service (default: that of AWS in the region). */
  readonly endpoint?: string;
  /** Keys, or a function that is asked for them before every request. */
  readonly credentials: S3Credentials | (() => S3Credentials | Promise<S3Credentials>);
  /** Before the names of all objects (default `bough/`). Stores that share a bucket need one each. */
  readonly prefix?: string;
  /** Puts the bucket's name into the path (default: with an `endpoint`, or when the name has dots). */
  readonly pathStyle?: boolean;
  /** Whether addresses for direct downloads are made (default: when the endpoint has https). */
  readonly signUrls?: boolean;
  /** How long the service may be silent (default 120,000). */
  readonly timeoutMs?: number;
  /** How often a request is made at most (default 6). */
  readonly attempts?: number;
  /** Default: the system's. */
  readonly clock?: Clock;
}

const optionsTable = optionTable<S3Options>({
  ...{ bucket: text, region: text, endpoint: text, prefix: text, pathStyle: flag, signUrls: flag },
  ...{ credentials: anything, timeoutMs: number, attempts: number, clock: anything },
});

/** Seven days: what the service allows. */
const longestUrlMs = 7 * 24 * 60 * 60 * 1000;
const sessionNote = "x-amz-meta-session";

/** Keeps the bytes of content in a bucket: `sqliteStore(path, { blobs: s3Blobs({ … }) })`. */
export function s3Blobs(options: S3Options): Blobs {
  checkOptions("The options of s3Blobs", options, optionsTable);
  const { bucket: bucketName, region = "us-east-1", prefix = "bough/", credentials } = options;
  if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucketName ?? ""))
    throw refused("bucket must be the name of a bucket.");
  if (!/^([A-Za-z0-9_-][A-Za-z0-9._-]*\/)*$/.test(prefix)) {
    throw refused('prefix must be names that each end in "/", of letters, digits, ".", "_" and "-".');
  }
  const isPair = typeof credentials === "function" || (credentials?.accessKeyId && credentials.secretAccessKey);
  if (!isPair) throw refused("credentials must be { accessKeyId, secretAccessKey } or a function that returns them.");
  const address = addressOf(options, region);
  const { clock = systemClock, timeoutMs = 120_000, attempts = 6 } = options;
  const ask = async () => (typeof credentials === "function" ? credentials() : credentials);
  const bucket = new Bucket({ address, region, credentials: ask, clock, timeoutMs, attempts });
  const blobs = new S3Blobs(bucket, { prefix, clock, attempts });
  return (options.signUrls ?? address.startsWith("https:")) ? blobs.withUrls() : blobs;
}

function addressOf({ bucket, endpoint, pathStyle }: S3Options, region: string): string {
  const given = endpoint ?? `https://s3.${region}.amazonaws.com`;
  if (!URL.canParse(given) || !/^https?:$/.test(new URL(given).protocol)) {
    throw refused("endpoint must be an http or https address.");
  }
  const url = new URL(given);
  const base = `${url.host}${url.pathname.replace(/\/+$/, "")}`;
  const isInPath = pathStyle ?? (endpoint !== undefined || bucket.includes("."));
  return isInPath ? `${url.protocol}//${base}/${bucket}` : `${url.protocol}//${bucket}.${base}`;
}

function refused(sentence: string): BoughError {
  return new BoughError("invalid_argument", sentence);
}

class S3Blobs implements Blobs {
  readonly #bucket: Bucket;
  readonly #options: { readonly prefix: string; readonly clock: Clock; readonly attempts: number };
  url?: NonNullable<Blobs["url"]>;

  constructor(bucket: Bucket, options: { readonly prefix: string; readonly clock: Clock; readonly attempts: number }) {
    this.#bucket = bucket;
    this.#options = options;
  }

  withUrls(): this {
    this.url = (place, options) => this.#url(place, options);
    return this;
  }

  async write(): Promise<BlobWriter> {
    const spool = new Spool(partBytes);
    return {
      add: (chunk) => spool.add(chunk),
      finish: async () => ({ id: spool.digest(), size: spool.size }),
      keep: (place, onProgress) =>
        send({
          ...{ bucket: this.#bucket, name: this.#nameOf(place), spool, onProgress },
          notes: {
            [digestNote]: spool.digest(),
            [sessionNote]: Buffer.from(place.sessionId).toString("base64url"),
          },
        }),
      abort: () => spool.close(),
    };
  }

  async *read(place: BlobPlace, range?: ByteRange): AsyncGenerator<Uint8Array> {
    const { clock, attempts } = this.#options;
    let { from, to } = { from: range?.from ?? 0, to: range?.to };
    for (let attempt = 1; to === undefined || from < to; ) {
      const answer = await this.#get(place, from, to);
      if (!answer) return;
      to ??= from + Number(answer.headers.get("content-length"));
      try {
        for await (const piece of this.#bucket.pieces(answer)) {
          attempt = 1;
          // Some services send more than they were asked for.
          const wanted = piece.subarray(0, to - from);
          for (let at = 0; at < wanted.length; at += largestPiece) {
            const next = wanted.subarray(at, at + largestPiece);
            from += next.length;
            yield next;
          }
          if (from === to) break;
        }
        if (from < to) throw new Error("The object store sent too few bytes.");
      } catch (cause) {
        // What has come is good: the rest is asked for.
        if (attempt++ >= attempts) {
          const sentence = "The object store broke off in the middle of content.";
          throw new BoughError("store_unavailable", sentence, { cause, retryable: true });
        }
        await clock.sleep(pauseMs(attempt));
      }
    }
  }

  /** The answer with the bytes of a range; undefined when it has none. */
  async #get(place: BlobPlace, from: number, to: number | undefined): Promise<Response | undefined> {
    const range: Record<string, string> =
      from === 0 && to === undefined ? {} : { range: `bytes=${from}-${to === undefined ? "" : to - 1}` };
    const request = { method: "GET", name: this.#nameOf(place), headers: range, expects: [404, 416] } as const;
    const answer = await this.#bucket.request(request);
    if (answer.ok && (answer.status === 206 || !range.range)) return answer;
    await answer.body?.cancel();
    if (answer.status === 416) return undefined;
    if (answer.status !== 404) throw new BoughError("store_unavailable", "The object store does not support ranges.");
    throw refuse.contentNotFound({ sessionId: place.sessionId, branchId: "" }, place.key);
  }

  async remove(place: BlobPlace): Promise<void> {
    const name = this.#nameOf(place);
    const answer = await this.#bucket.request({ method: "DELETE", name, expects: [404] });
    await answer.body?.cancel();
    await removeParts(this.#bucket, name);
  }

  async *list(): AsyncGenerator<BlobPlace & { readonly size: number }> {
    const { prefix } = this.#options;
    let token: string | undefined;
    do {
      const query = { "list-type": "2", prefix, ...(token !== undefined && { "continuation-token": token }) };
      const { text: page } = await this.#bucket.text({ method: "GET", query });
      for (const block of blocksOf(page, "Contents")) {
        const name = fieldOf(block, "Key") ?? "";
        const place = placeOf(name.slice(prefix.length));
        if (!place) continue;
        const sessionId = place.sessionId ?? (await this.#sessionOf(name));
        if (sessionId !== undefined) yield { sessionId, key: place.key, size: Number(fieldOf(block, "Size")) };
      }
      token = fieldOf(page, "IsTruncated") === "true" ? fieldOf(page, "NextContinuationToken") : undefined;
    } while (token !== undefined);
  }

  async #sessionOf(name: string): Promise<string | undefined> {
    const answer = await this.#bucket.request({ method: "HEAD", name, expects: [404] });
    const noted = answer.headers.get(sessionNote);
    return noted === null ? undefined : Buffer.from(noted, "base64url").toString();
  }

  /**
   * Addresses are signed as of the beginning of a window that is as long as asked for, and hold for two: everybody who asks
   * within a window gets the same one, so a prompt that has it stays as it is.
   */
  async #url(place: BlobPlace, { expiresMs, mediaType, name }: ContentUrlOptions): Promise<ContentUrl> {
    const windowMs = Math.max(1_000, Math.min(expiresMs, longestUrlMs / 2));
    const signedAt = Math.floor(this.#options.clock.now() / windowMs) * windowMs;
    const seconds = Math.floor((2 * windowMs) / 1000);
    const query = {
      "X-Amz-Expires": String(seconds),
      "response-content-type": mediaType,
      ...(name !== undefined && { "response-content-disposition": `attachment; filename*=UTF-8''${encodeName(name)}` }),
    };
    const url = await this.#bucket.signUrl(this.#nameOf(place), query, signedAt);
    return { url, expiresAt: Math.floor(signedAt / 1000) * 1000 + seconds * 1000 };
  }

  #nameOf(place: BlobPlace): string {
    return this.#options.prefix + nameOf(place);
  }
}

function encodeName(name: string): string {
  return encodeURIComponent(Buffer.from(name).toString()).replace(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16)}`,
  );
}
