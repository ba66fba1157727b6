// Fetching a file that a message names by a web address: only where that is allowed, and only from the public internet.
//   FetchUrl-1. A redirect is a new address: everything is checked again.
//   FetchUrl-2. What is refused, too long or too slow is broken off at once; nothing of it is kept.

import type { ClientRequest, IncomingMessage } from "node:http";
import type { RequestOptions } from "node:https";
import { alarm, type Clock } from "../../base/clock.ts";
import { BoughError } from "../../base/errors.ts";
import { mediaTypeOf } from "../../base/media-type.ts";
import { nodeModule } from "../../base/node.ts";
import { peekBytes } from "../given.ts";
import { isTextType } from "../text.ts";
import { checkAddresses, checkUrl, NotListed, type ResolvedAddress, refused } from "./addresses.ts";

/** Which web addresses are fetched. */
export interface FetchRules {
  /** Names of hosts: `example.com`, `*.example.com` for the names below it, or `*` for all public ones. */
  readonly hosts: readonly string[];
  /** The largest file (default 20 MB). */
  readonly maxBytes?: number;
  /** How long a file may take (default 30,000). */
  readonly timeoutMs?: number;
}

/** How the network is reached; tests have their own. */
export interface Network {
  resolve(hostname: string): Promise<readonly ResolvedAddress[]>;
  request(options: RequestOptions): ClientRequest;
}

/** A file on its way. */
export interface FetchedFile {
  readonly mediaType: string;
  readonly filename?: string;
  readonly stream: AsyncIterable<Uint8Array>;
}

export interface FetchContext {
  readonly rules: FetchRules;
  readonly clock: Clock;
  readonly signal?: AbortSignal;
  readonly network?: Network;
}

const mostRedirects = 3;

/** The file at this address; undefined when the rules don't name its host. `said` is the media type that the message names. */
export async function fetchUrl(
  address: string,
  said: string | undefined,
  { rules, clock, signal, network = nodeNetwork() }: FetchContext,
): Promise<FetchedFile | undefined> {
  const { hosts, maxBytes = 20_000_000, timeoutMs = 30_000 } = rules;
  const stop = new AbortController();
  const cancel = alarm(clock, timeoutMs, () => stop.abort(refused(`it took longer than ${timeoutMs / 1000} s`)));
  const signals = signal ? AbortSignal.any([signal, stop.signal]) : stop.signal;
  try {
    let url = checkUrl(address, hosts);
    for (let redirects = 0; ; redirects++) {
      const answer = await get(url, network, signals);
      const next = redirectOf(answer, url);
      if (!next) return await fileOf(answer, { url, said, maxBytes, signal: signals, done: cancel });
      answer.destroy();
      if (redirects === mostRedirects) throw refused("it was redirected too often");
      url = checkUrl(next, hosts);
    }
  } catch (error) {
    cancel();
    if (error instanceof NotListed) return undefined;
    throw BoughError.is(error) ? error : unreachable(signals.aborted ? signals.reason : error);
  }
}

/** Asks the address that was checked (Addresses-1), under the name that the URL has. */
async function get(url: URL, network: Network, signal: AbortSignal): Promise<IncomingMessage> {
  signal.throwIfAborted();
  const aborted = new Promise<never>((_, reject) =>
    signal.addEventListener("abort", () => reject(signal.reason), { once: true }),
  );
  aborted.catch(() => {});
  const found = await Promise.race([network.resolve(url.hostname), aborted]);
  const { address, family } = await checkAddresses(found);
  return new Promise((resolve, reject) => {
    const request = network.request({
      ...{ host: address, family, port: 443, servername: url.hostname, method: "GET", agent: false, signal },
      path: url.pathname + url.search,
      headers: { host: url.hostname, accept: "*/*", "accept-encoding": "identity", "user-agent": "bough" },
    });
    request.on("error", reject);
    request.once("response", (answer) => {
      // Who reads it is told there; who broke it off knows.
      answer.on("error", () => {});
      resolve(answer);
    });
    request.end();
  });
}

function redirectOf({ statusCode = 0, headers }: IncomingMessage, url: URL): string | undefined {
  if (![301, 302, 303, 307, 308].includes(statusCode)) return undefined;
  const { location = "" } = headers;
  if (!URL.canParse(location, url.href)) throw refused("it was redirected to no address");
  return new URL(location, url).href;
}

interface Reading {
  readonly url: URL;
  readonly said: string | undefined;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
  readonly done: () => void;
}

async function fileOf(answer: IncomingMessage, reading: Reading): Promise<FetchedFile> {
  const { url, said, maxBytes, done } = reading;
  try {
    const { statusCode, headers } = answer;
    if (statusCode !== 200) throw refused(`its server answered ${statusCode}`);
    const { "content-encoding": encoding = "identity", "content-length": length } = headers;
    if (encoding !== "identity") throw refused("its server sent it packed");
    if (Number(length ?? 0) > maxBytes) throw refused(`it has more than ${maxBytes} bytes`);
    const { start, stream } = await peekBytes(bounded(answer, reading), 32);
    const mediaType = typeOf(start, said, headers["content-type"]);
    const filename = nameIn(url);
    return { mediaType, stream, ...(filename !== undefined && { filename }) };
  } catch (error) {
    done();
    answer.destroy();
    throw error;
  }
}

/** The bytes, as many as are allowed, in the time that is (FetchUrl-2). */
async function* bounded(answer: IncomingMessage, { maxBytes, signal, done }: Reading): AsyncGenerator<Uint8Array> {
  let size = 0;
  try {
    for await (const piece of answer as AsyncIterable<Uint8Array>) {
      size += piece.length;
      if (size > maxBytes) throw refused(`it has more than ${maxBytes} bytes`);
      yield piece;
    }
  } catch (error) {
    throw BoughError.is(error) ? error : unreachable(signal.aborted ? signal.reason : error);
  } finally {
    done();
    answer.destroy();
  }
}

/**
 * The type by the first bytes. A page that says that it is a picture is none; texts have no signature, so they are believed if
 * that is what was asked for.
 */
function typeOf(start: Uint8Array, said: string | undefined, told: string | undefined): string {
  const found = mediaTypeOf(start);
  const wanted = said?.includes("*") ? undefined : said?.toLowerCase();
  const server = told?.split(";")[0]?.trim().toLowerCase();
  if (found !== "application/octet-stream") {
    // Documents of office programs are archives.
    return found === "application/zip" && wanted?.startsWith("application/") ? wanted : found;
  }
  const type = wanted ?? server;
  if (type !== undefined && isTextType(type)) return type;
  if (type !== undefined && /^(image|audio|video)\/|^application\/pdf$/.test(type)) throw refused(`it is no ${type}`);
  return type ?? found;
}

function nameIn({ pathname }: URL): string | undefined {
  const last = pathname.split("/").at(-1) ?? "";
  try {
    const name = decodeURIComponent(last).slice(0, 255);
    return name === "" ? undefined : name;
  } catch {
    return undefined;
  }
}

function unreachable(cause: unknown): BoughError {
  if (BoughError.is(cause)) return cause;
  const why = cause instanceof Error ? cause.message : String(cause);
  return new BoughError("invalid_argument", `The file was not fetched: ${why}`, { cause });
}

function nodeNetwork(): Network {
  const https = nodeModule<typeof import("node:https")>("node:https");
  const dns = nodeModule<typeof import("node:dns")>("node:dns");
  if (!https || !dns) throw refused("this platform can't check where addresses lead");
  return {
    resolve: (hostname) => dns.promises.lookup(hostname, { all: true, verbatim: true }),
    request: (options) => https.request(options),
  };
}
