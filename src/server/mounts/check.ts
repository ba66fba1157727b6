// Checks mounts when the server is created, so that ambiguous paths are refused early.

import { BoughError } from "../../base/errors.ts";
import { scopes } from "../../base/identity.ts";
import { routes } from "../../wire/index.ts";
import type { MountAction } from "../policy.ts";
import { isBelow, isPlainPath } from "../prefix.ts";
import type { Mount, MountRoute } from "./mount.ts";

const namePattern = /^[A-Za-z][A-Za-z0-9-]*$/;
const methods = ["GET", "POST", "PUT", "PATCH", "DELETE"];
const headerPattern = /^[A-Za-z0-9-]+$/;
const routePattern = /^(?:\/(?::[A-Za-z]\w*|[A-Za-z0-9_~-][A-Za-z0-9._~-]*))*(?:\/\*)?$/;

/** The first segments of the built-in routes: paths below them are reserved. */
const builtIn = new Set(Object.values(routes).map(({ path }) => path.split("/")[1]!));

/** Whether a path below the server's prefix is a built-in route, or could become one. */
export function isBuiltIn(path: string): boolean {
  return builtIn.has(path.split("/")[1]!);
}

/** A route of a mount with its action and its whole path below the server's prefix. */
export interface MountedRoute extends MountRoute {
  readonly action: MountAction;
  readonly fullPath: string;
}

/** The routes of all mounts; throws for an invalid mount. */
export function checkMounts(mounts: readonly Mount[]): readonly MountedRoute[] {
  const seen: Mount[] = [];
  for (const mount of mounts) {
    checkMount(mount);
    for (const other of seen) checkPair(other, mount);
    seen.push(mount);
  }
  return mounts.flatMap(({ name, path, routes: own }) =>
    own.map((route) => ({ ...route, action: `${name}.${route.name}` as const, fullPath: path + route.path })),
  );
}

function checkMount(mount: Mount): void {
  const { name, path, routes: own, requestHeaders = [], responseHeaders = [] } = mount;
  if (!namePattern.test(name)) {
    throw refuse(
      mount,
      `The name of a mount must begin with a letter and consist of letters, digits and "-", not "${name}".`,
    );
  }
  if (path === "" || !isPlainPath(path)) {
    throw refuse(
      mount,
      `The path of mount "${name}" must be like "/openai/v1": it begins with a slash and does not end with one.`,
    );
  }
  if (isBuiltIn(path)) {
    throw refuse(
      mount,
      `Mount "${name}" can't be at "${path}": paths below "/${path.split("/")[1]}" are reserved for built-in routes.`,
    );
  }
  const badHeader = [...requestHeaders, ...responseHeaders].find((header) => !headerPattern.test(header));
  if (badHeader !== undefined)
    throw refuse(mount, `Mount "${name}" lists "${badHeader}", which is not a valid header name.`);
  own.forEach((route, i) => void checkRoute(mount, route, own.slice(0, i)));
}

function checkRoute(mount: Mount, route: MountRoute, before: readonly MountRoute[]): void {
  const { name, method, path, scope, bodyBytes = 0 } = route;
  const fail = (why: string) => refuse(mount, `Route "${name}" of mount "${mount.name}" ${why}.`);
  if (!namePattern.test(name)) throw fail('needs a name of letters, digits and "-" that begins with a letter');
  if (!methods.includes(method)) throw fail(`has the unknown method "${method}"; use one of ${methods.join(", ")}`);
  if (!routePattern.test(path)) throw fail(`must have a path like "/responses/:responseId", not "${path}"`);
  if (!scopes.includes(scope)) throw fail(`has the unknown scope "${scope}"; use one of ${scopes.join(", ")}`);
  if (!(bodyBytes >= 0)) throw fail("must have bodyBytes ≥ 0");
  if (typeof route.handle !== "function") throw fail("needs a function handle");
  if (before.some((other) => other.name === name)) throw fail("is defined twice");
  const shape = (each: string) => each.replace(/:\w+/g, ":");
  const same = before.find((other) => other.method === method && shape(other.path) === shape(path));
  if (same) throw fail(`has the same path and method as route "${same.name}"`);
}

function checkPair(one: Mount, two: Mount): void {
  if (one.name === two.name) throw refuse(two, `Two mounts have the name "${two.name}".`);
  if (isBelow(one.path, two.path) || isBelow(two.path, one.path)) {
    throw refuse(two, `Mounts "${one.name}" and "${two.name}" overlap: "${one.path}" and "${two.path}".`);
  }
}

function refuse({ name, path }: Mount, sentence: string): BoughError {
  return new BoughError("invalid_argument", sentence, { data: { mount: name, path } });
}
