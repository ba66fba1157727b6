// Reads the URL of a store without opening it.

import { resolve } from "node:path";
import { maskUrl } from "../base/mask-url.ts";
import { pathOf } from "../sessions/open-store.ts";

/** The file or directory that a URL names, if any. */
export function placeOf(url: string): { kind: "sqlite" | "file"; path: string } | undefined {
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(url)?.[1]?.toLowerCase();
  const kind = scheme === undefined || scheme === "file" ? "file" : scheme === "sqlite" ? "sqlite" : undefined;
  return kind && { kind, path: resolve(pathOf(url)) };
}

/** A store's URL without passwords, for display. A local path has none. */
export function showUrl(url: string): string {
  return placeOf(url) ? url : maskUrl(url);
}
