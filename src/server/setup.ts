// Setup: prepares a server from its options.

import { Agent } from "../agent/index.ts";
import { systemClock } from "../base/clock.ts";
import { BoughError } from "../base/errors.ts";
import type { Store } from "../log/store.ts";
import { lazyStore } from "../sessions/lazy-store.ts";
import { Assets, type AssetsOptions } from "./assets.ts";
import type { GuardOptions } from "./guard.ts";
import { isBuiltIn } from "./mounts/check.ts";
import type { Mount } from "./mounts/mount.ts";
import type { ServerOptions } from "./options.ts";
import { isBelow } from "./prefix.ts";
import { studioAssets } from "./studio.ts";

const loopbackNames = ["localhost", "127.0.0.1", "[::1]"];

/** The guards of the first checks. */
export function guardOptions({ hosts = loopbackNames, origins = [], mounts = [] }: ServerOptions): GuardOptions {
  return {
    hosts: new Set(hosts.map((host) => host.toLowerCase())),
    origins: new Set(origins),
    requestHeaders: mounts.flatMap((mount) => mount.requestHeaders ?? []),
    responseHeaders: mounts.flatMap((mount) => mount.responseHeaders ?? []),
  };
}

/** The assets: Studio, an app, a single page. */
export function assetsOf({ assets, studio, page, mounts = [] }: ServerOptions, prefix: string): readonly Assets[] {
  const shown = studio === true ? {} : studio || undefined;
  const apps: { readonly name: string; readonly options: AssetsOptions }[] = [];
  if (assets) apps.push({ name: "assets", options: assets });
  if (shown) apps.push({ name: "studio", options: studioAssets(shown) });
  if (page !== undefined) apps.push({ name: "page", options: { files: { "index.html": page }, fallback: false } });
  const places = new Map<string, string>();
  for (const { name, options } of apps) {
    const { path = "" } = options;
    checkPlace(path, mounts);
    const other = places.get(path);
    if (other !== undefined) {
      throw invalid(`\`${other}\` and \`${name}\` can't both be at "${path || "/"}": give one of them a path.`, path);
    }
    places.set(path, name);
  }
  return apps.map(({ options }) => new Assets(options, prefix));
}

function checkPlace(path: string, mounts: readonly Mount[]): void {
  if (path === "") return;
  if (isBuiltIn(path)) {
    throw invalid(
      `Assets can't be at "${path}": paths below "/${path.split("/")[1]}" are reserved for built-in routes.`,
      path,
    );
  }
  const mount = mounts.find((each) => isBelow(path, each.path) || isBelow(each.path, path));
  if (mount) throw invalid(`Assets at "${path}" and mount "${mount.name}" at "${mount.path}" overlap.`, path);
}

function invalid(sentence: string, path: string): BoughError {
  return new BoughError("invalid_argument", sentence, { data: { path } });
}

/** The one store of a server and its agents. */
export function storeOf({ store, agents = {}, auth, clock = systemClock }: ServerOptions): Store {
  const made = Object.values(agents).filter((agent) => agent instanceof Agent);
  if (made.length > 0 && auth) {
    throw new BoughError(
      "invalid_argument",
      "An existing Agent has one store for all tenants. With `auth`, pass the agent's options instead.",
    );
  }
  const own = made[0]?.store ?? lazyStore(store, { clock });
  const isShared = made.every((agent) => agent.store === own) && (made.length === 0 || !store || store === own);
  if (isShared) return own;
  throw new BoughError("invalid_argument", "All Agent objects of a server must use the server's store.");
}
