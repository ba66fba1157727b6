// The guard: checks of the raw request that come first, for every route.

import { Refusal } from "./refusal.ts";

export interface GuardOptions {
  /** Host names that this server answers to, without ports. */
  readonly hosts: ReadonlySet<string>;
  /** Origins, exactly as browsers send them, that may send requests besides the server's own. */
  readonly origins: ReadonlySet<string>;
  /** Headers of mounts that pages of those origins may send and read. */
  readonly requestHeaders: readonly string[];
  readonly responseHeaders: readonly string[];
  /** Whether any page may link here, for content that is the same for all users (default false). */
  readonly allowsNavigation?: boolean;
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
 * Throws for requests from foreign pages, rebound host names and ambiguous paths. `target` is the path as it
 * was sent: a `Request` has its dot segments already resolved.
 */
export function guard(
  request: Request,
  { hosts, origins, allowsNavigation = false }: Pick<GuardOptions, "hosts" | "origins" | "allowsNavigation">,
  target?: string,
): void {
  const url = new URL(request.url);
  const host = request.headers.get("host") ?? url.host;
  if (!hosts.has("*") && !hosts.has(nameOf(host))) throw new Refusal("host_refused");
  const origin = request.headers.get("origin");
  if (origin !== null) {
    if (!origins.has(origin) && !isOwn(origin, host)) throw new Refusal("origin_refused");
  } else if (request.headers.get("sec-fetch-site") === "cross-site" && !(allowsNavigation && isNavigation(request))) {
    throw new Refusal("origin_refused");
  }
  checkPath(url.pathname);
  if (target === undefined) return;
  // An absolute target must name the same host.
  const named = /^https?:\/\/(?:[^/?#]*@)?([^/?#]*)/i.exec(target);
  if (named && named[1] !== host) throw new Refusal("host_refused");
  checkPath(target.slice(named?.[0].length ?? 0).split(/[?#]/)[0]!);
}

/** Whether the browser reports a top-level navigation, whose response no other page sees. */
function isNavigation({ headers }: Request): boolean {
  return headers.get("sec-fetch-mode") === "navigate" && headers.get("sec-fetch-dest") === "document";
}

/** Whether the browser reports that the page is from this server. */
function isOwn(origin: string, host: string): boolean {
  return origin === `http://${host}` || origin === `https://${host}`;
}

function nameOf(host: string): string {
  return host.replace(/:\d+$/, "").toLowerCase();
}

/** Refuses encoded separators and dots, which decoders read differently. */
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

/** Adds the headers of every response; those set by a handler stay. */
export function secured(response: Response): Response {
  const { headers } = response;
  for (const [name, value] of Object.entries(securityHeaders)) if (!headers.has(name)) headers.set(name, value);
  return response;
}

/** The same, with CORS headers. */
export function secure(response: Response, request: Request, { origins, responseHeaders }: GuardOptions): Response {
  const { headers } = secured(response);
  const origin = request.headers.get("origin");
  if (origin !== null && origins.has(origin)) {
    headers.set("access-control-allow-origin", origin);
    headers.set("cross-origin-resource-policy", "cross-origin");
    const exposed = ["content-disposition", "retry-after", "x-request-id", ...responseHeaders];
    headers.set("access-control-expose-headers", exposed.join(", "));
    headers.append("vary", "origin");
  }
  return response;
}

const allowedHeaders = [
  "authorization",
  "content-type",
  "idempotency-key",
  "last-event-id",
  "range",
  "x-api-key",
  "x-filename",
  "x-request-id",
];

/** The response to a CORS preflight; only configured origins are allowed. */
export function preflight(request: Request, { origins, requestHeaders }: GuardOptions): Response | undefined {
  const origin = request.headers.get("origin");
  if (request.method !== "OPTIONS" || origin === null || !origins.has(origin)) return undefined;
  return new Response(null, {
    status: 204,
    headers: {
      "access-control-allow-methods": "GET, POST, PUT, PATCH, DELETE",
      "access-control-allow-headers": [...allowedHeaders, ...requestHeaders].join(", "),
      "access-control-max-age": "600",
    },
  });
}
