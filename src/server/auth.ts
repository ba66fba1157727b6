// Authentication. Every route and the socket use one function from a request to an identity.

import { base64url } from "../base/bytes.ts";
import { BoughError } from "../base/errors.ts";
import type { Identity } from "../base/identity.ts";
import { sha256, sha256Hex } from "../base/sha256.ts";
import { scopes, tokenSubprotocol } from "../wire/index.ts";

export type { Identity };

/** Returns the identity of a request, or undefined to refuse it. Called again while a stream is open, so that a revoked key ends it. */
export type Authenticate = (request: Request) => Identity | undefined | Promise<Identity | undefined>;

/** A random 256-bit token that can be used in a URL. */
export function randomToken(): string {
  return base64url(crypto.getRandomValues(new Uint8Array(32)));
}

/** Why a token is invalid, if it is: it is sent in a header and must not be guessable. */
export function tokenFault(token: string): string | undefined {
  if (/^[\x21-\x7e]{16,}$/.test(token)) return undefined;
  return "A token must have at least 16 characters, all printable ASCII without spaces.";
}

/** Throws for an invalid token. */
export function checkToken(token: string): void {
  const fault = tokenFault(token);
  if (fault !== undefined) throw new BoughError("invalid_argument", fault);
}

/** The token or API key of a request, from `Authorization: Bearer` or `x-api-key`. */
export function credentialOf(request: Request): string | undefined {
  const bearer = /^Bearer +(\S+)$/i.exec(request.headers.get("authorization") ?? "")?.[1];
  return bearer ?? request.headers.get("x-api-key") ?? undefined;
}

/** Authenticates by one token, which has all scopes. */
export function tokenAuth(token: string): Authenticate {
  const expected = sha256(token);
  return (request) => {
    const given = credentialOf(request);
    if (given === undefined || !isSame(sha256(given), expected)) return undefined;
    return { tenant: "", scopes, credential: "token" };
  };
}

/** Creates an API key and its hash. Store only the hash. */
export function createApiKey(): { key: string; hash: string } {
  const key = `bough_${randomToken()}`;
  return { key, hash: hashApiKey(key) };
}

/** The hash of an API key, for storing it. A key has 256 random bits, so a single SHA-256 can't be reversed. */
export function hashApiKey(key: string): string {
  return sha256Hex(key);
}

/**
 * Authenticates by API keys of which only the hashes are stored.
 *
 * @example
 * createServer({ agents, store, auth: apiKeys((hash) => keys.get(hash)) });
 */
export function apiKeys(find: (hash: string) => Identity | undefined | Promise<Identity | undefined>): Authenticate {
  return (request) => {
    const given = credentialOf(request);
    return given === undefined ? undefined : labelled(find, hashApiKey(given));
  };
}

/** The first digits of the hash name the key in the audit log, unless the identity has a label. */
async function labelled(find: Parameters<typeof apiKeys>[0], hash: string): Promise<Identity | undefined> {
  const identity = await find(hash);
  return identity && { credential: hash.slice(0, 12), ...identity };
}

/** A browser can't set headers on a WebSocket: it sends the token as a subprotocol, which becomes a header here. */
export function liftSocketToken(headers: Headers): void {
  const offered = (headers.get("sec-websocket-protocol") ?? "").split(",").map((each) => each.trim());
  const carrier = offered.find((each) => each.startsWith(tokenSubprotocol));
  if (carrier && !headers.has("authorization")) {
    headers.set("authorization", `Bearer ${carrier.slice(tokenSubprotocol.length)}`);
  }
  headers.delete("sec-websocket-protocol");
}

/** Compares digests of equal length in constant time. */
function isSame(one: Uint8Array, two: Uint8Array): boolean {
  let difference = 0;
  for (let i = 0; i < two.length; i++) difference |= one[i]! ^ two[i]!;
  return difference === 0;
}
