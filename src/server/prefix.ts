// Prefixes: the path of a server's routes, and which of several servers a request is for.

import { BoughError } from "../base/errors.ts";

/** The prefix, or "" for none. Only paths that every router, proxy and browser reads the same way are accepted. */
export function checkPrefix(prefix = ""): string {
  if (isPlainPath(prefix)) return prefix;
  throw new BoughError(
    "invalid_argument",
    'prefix must be a path such as "/api/bough": it begins with a slash, does not end with one, and consists of letters, digits, ".", "_", "~" and "-".',
    { data: { prefix } },
  );
}

/** Whether a path is empty, or has a leading slash and plain segments only. */
export function isPlainPath(path: string): boolean {
  return /^(?:\/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*$/.test(path);
}

/** Whether a path is the prefix or is below it. */
export function isBelow(path: string, prefix: string): boolean {
  return path === prefix || path.startsWith(`${prefix}/`);
}

/** The server with the longest matching prefix. If none matches, the first one, which refuses unknown routes. */
export function serverFor<S extends { readonly prefix: string }>(servers: readonly S[], target: string): S {
  const path = target.replace(/^https?:\/\/[^/?#]*/i, "").split(/[?#]/)[0]!;
  const fitting = servers.filter(({ prefix }) => isBelow(path, prefix));
  return fitting.sort((a, b) => b.prefix.length - a.prefix.length)[0] ?? servers[0]!;
}
