// The guard: what is looked at before anything else, on the raw request, whatever route it is for.

import { Refusal } from "./refusal.ts";

export interface GuardOptions {
  /** Host names this server answers to, without ports. */
  readonly hosts: ReadonlySet<string>;
  /** Origins, exactly as browsers send them, that may ask besides the server's own. */
  readonly origins: ReadonlySet<string>;
}

const securityHeaders: Readonly<Record<string, string>> = {
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
  "cache-control": "no-store",
};

/**
 * Throws for a request that a foreign page, a rebound name or a trick with the path brought here. `target` is the path as it
 * was sent: in a `Request`, dot segments are resolved already.
 */
export function guard(request: Request, { hosts, origins }: GuardOptions, target?: string): void {
  const url = new URL(request.url);
  const host = request.headers.get("host") ?? url.host;
  if (!hosts.has("*") && !hosts.has(nameOf(host))) throw new Refusal("host_refused");
  const origin = request.headers.get("origin");
  if (origin !== null) {
    if (!origins.has(origin) && !isOwn(origin, host)) throw new Refusal("origin_refused");
  } else if (request.headers.get("sec-fetch-site") === "cross-site") throw new Refusal("origin_refused");
  checkPath(url.pathname);
  if (target === undefined) return;
  // A target that names a host must name the one that was let in.
  const named = /^https?:\/\/(?:[^/?#]*@)?([^/?#]*)/i.exec(target);
  if (named && named[1] !== host) throw new Refusal("host_refused");
  checkPath(target.slice(named?.[0].length ?? 0).split(/[?#]/)[0]!);
}

/** Whether a browser says that the page comes from this very server. */
function isOwn(origin: string, host: string): boolean {
  return origin === `http://${host}` || origin === `https://${host}`;
}

function nameOf(host: string): string {
  return host.replace(/:\d+$/, "").toLowerCase();
}

/** Separators and dots that one decoder sees and another doesn't are nobody's id. */
function checkPath(path: string): void {
  if (/\/\/|\\|%2f|%5c|%00/i.test(path)) throw new Refusal("invalid_argument", "The path is not valid.");
  try {
    if (
      decodeURIComponent(path)
        .split("/")
        .some((each) => each === "." || each === "..")
    )
      throw new Error("dots");
  } catch {
    throw new Refusal("invalid_argument", "The path is not valid.");
  }
}

/** With what every answer carries; what a handler set stays. */
export function secured(response: Response): Response {
  const { headers } = response;
  for (const [name, value] of Object.entries(securityHeaders)) if (!headers.has(name)) headers.set(name, value);
  return response;
}

/** The same, and what a browser's page may know of it. */
export function secure(response: Response, request: Request, origins: ReadonlySet<string>): Response {
  const { headers } = secured(response);
  const origin = request.headers.get("origin");
  if (origin !== null && origins.has(origin)) {
    headers.set("access-control-allow-origin", origin);
    headers.set("cross-origin-resource-policy", "cross-origin");
    headers.set("access-control-expose-headers", "content-disposition, retry-after, x-request-id");
    headers.append("vary", "origin");
  }
  return response;
}

/** The answer to a browser that asks first; only origins that were configured get one that helps. */
export function preflight(request: Request, origins: ReadonlySet<string>): Response | undefined {
  const origin = request.headers.get("origin");
  if (request.method !== "OPTIONS" || origin === null || !origins.has(origin)) return undefined;
  return new Response(null, {
    status: 204,
    headers: {
      "access-control-allow-methods": "GET, POST, PUT, PATCH, DELETE",
      "access-control-allow-headers":
        "authorization, content-type, idempotency-key, last-event-id, x-api-key, x-filename, x-request-id",
      "access-control-max-age": "600",
    },
  });
}
