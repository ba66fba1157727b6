// Who asks. There is one way in for every route and the socket: a function from a request to an identity.

import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { BoughError } from "../base/errors.ts";
import type { Identity } from "../base/identity.ts";
import { scopes, tokenSubprotocol } from "../wire/index.ts";

export type { Identity };

/** Finds out who asks; nothing means that nobody may. Asked again while a stream is open, so that a revoked key ends it. */
export type Authenticate = (request: Request) => Identity | undefined | Promise<Identity | undefined>;

/** 256 bits of chance, as text that stands in a URL. */
export function randomToken(): string {
  return randomBytes(32).toString("base64url");
}

/** What is wrong with a token that is no token; it goes into a header and must not be guessed. */
export function tokenFault(token: string): string | undefined {
  if (/^[\x21-\x7e]{16,}$/.test(token)) return undefined;
  return "A token has at least 16 characters, all of them ASCII and none a space.";
}

/** Throws for a token that lets in others than those who were given it. */
export function checkToken(token: string): void {
  const fault = tokenFault(token);
  if (fault !== undefined) throw new BoughError("invalid_argument", fault);
}

/** The token or key of a request: `Authorization: Bearer`, or `x-api-key`. */
export function credentialOf(request: Request): string | undefined {
  const bearer = /^Bearer +(\S+)$/i.exec(request.headers.get("authorization") ?? "")?.[1];
  return bearer ?? request.headers.get("x-api-key") ?? undefined;
}

/** Everything, for whoever has the token. */
export function tokenAuth(token: string): Authenticate {
  const expected = digest(token);
  return (request) => {
    const given = credentialOf(request);
    // Digests have one length, so that the comparison tells nothing of it.
    if (given === undefined || !timingSafeEqual(digest(given), expected)) return undefined;
    return { tenant: "", scopes, credential: "token" };
  };
}

/** A new API key, and its hash: the only thing to store. */
export function createApiKey(): { key: string; hash: string } {
  const key = `bough_${randomToken()}`;
  return { key, hash: hashApiKey(key) };
}

/** How an API key is stored. A key has 256 bits of chance, so that one SHA-256 can't be guessed back. */
export function hashApiKey(key: string): string {
  return digest(key).toString("hex");
}

/**
 * Authentication by API keys of which only the hashes are known.
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

/** The first digits of the hash name the key in the audit log, unless it has a label of its own. */
async function labelled(find: Parameters<typeof apiKeys>[0], hash: string): Promise<Identity | undefined> {
  const identity = await find(hash);
  return identity && { credential: hash.slice(0, 12), ...identity };
}

/** A browser can't set headers on a WebSocket: the token comes as a subprotocol, and is a header from here on. */
export function liftSocketToken(headers: Headers): void {
  const offered = (headers.get("sec-websocket-protocol") ?? "").split(",").map((each) => each.trim());
  const carrier = offered.find((each) => each.startsWith(tokenSubprotocol));
  if (carrier && !headers.has("authorization")) {
    headers.set("authorization", `Bearer ${carrier.slice(tokenSubprotocol.length)}`);
  }
  headers.delete("sec-websocket-protocol");
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
