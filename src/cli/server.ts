// A server that a command talks to instead of a store.

import type { ArgDef } from "citty";
import { misuse } from "./command.ts";
import { findToken } from "./token-file.ts";

/** Options of commands that use a server. */
export const serverArgs = {
  url: { type: "string", valueHint: "URL", description: "use this server (the URL that bough serve prints)" },
  token: {
    type: "string",
    valueHint: "TOKEN",
    description: "the server's token (default: BOUGH_TOKEN, else the token file in ./.bough)",
  },
} as const satisfies Record<string, ArgDef>;

interface ServerWords {
  readonly url?: string | undefined;
  readonly token?: string | undefined;
}

/**
 * The server's address and token: the one given, that of the URL, BOUGH_TOKEN, or the file of a server started here. Undefined
 * without --url. `own` is what the server has of its own, and what therefore can't be given, too.
 */
export function serverAt(
  { url: given, token: named }: ServerWords,
  own: Readonly<Record<string, unknown>>,
): { url: string; token?: string } | undefined {
  if (given === undefined) {
    if (named !== undefined) throw misuse("--token requires --url.");
    return undefined;
  }
  if (Object.values(own).some((value) => value !== undefined)) {
    const names = Object.keys(own).map((name) => `--${name}`);
    throw misuse(`--url can't be combined with ${names.join(" or ")}: the server has its own.`);
  }
  const parsed = URL.canParse(given) ? new URL(given) : undefined;
  if (parsed?.protocol !== "http:" && parsed?.protocol !== "https:")
    throw misuse("--url must be an http:// or https:// URL.");
  const inUrl = new URLSearchParams(parsed.hash.slice(1)).get("token");
  const token = named ?? inUrl ?? (process.env.BOUGH_TOKEN || undefined) ?? findToken(parsed);
  parsed.hash = "";
  return { url: parsed.href.replace(/\/+$/, ""), ...(token && { token }) };
}
