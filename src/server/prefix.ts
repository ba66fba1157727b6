// Prefixes: where a server's routes begin, and which of several servers a request is for.

import { BoughError } from "../base/errors.ts";

/** The prefix, or "" for none. Only what means the same to every router, proxy and browser. */
export function checkPrefix(prefix = ""): string {
  const isPlain = /^(?:\/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*$/.test(prefix);
  if (isPlain) return prefix;
  throw new BoughError(
    "invalid_argument",
    'prefix must be a path such as "/api/bough": it begins with a slash, does not end with one, and has letters, digits, ".", "_", "~" and "-".',
    { data: { prefix } },
  );
}

/** Whether a path is the prefix or lies below it. */
function isBelow(path: string, prefix: string): boolean {
  return path === prefix || path.startsWith(`${prefix}/`);
}

/** The server with the longest prefix that fits. Where none does, the first one: it refuses what it has no route for. */
export function serverFor<S extends { readonly prefix: string }>(servers: readonly S[], target: string): S {
  const path = target.replace(/^https?:\/\/[^/?#]*/i, "").split(/[?#]/)[0]!;
  const fitting = servers.filter(({ prefix }) => isBelow(path, prefix));
  return fitting.sort((a, b) => b.prefix.length - a.prefix.length)[0] ?? servers[0]!;
}
