// What the URL of a store says, without opening it.

import { resolve } from "node:path";
import { maskUrl } from "../base/mask-url.ts";
import { pathOf } from "../sessions/open-store.ts";

/** What a URL names on this machine's disk, if it does. */
export function placeOf(url: string): { kind: "sqlite" | "file"; path: string } | undefined {
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(url)?.[1]?.toLowerCase();
  const kind = scheme === undefined || scheme === "file" ? "file" : scheme === "sqlite" ? "sqlite" : undefined;
  return kind && { kind, path: resolve(pathOf(url)) };
}

/** The URL of a store as it may be shown: without passwords. A path on this machine's disk has none. */
export function showUrl(url: string): string {
  return placeOf(url) ? url : maskUrl(url);
}
