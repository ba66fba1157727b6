// Who holds a claim: this process, named so that another process on the same host can tell when it is dead.

import { nodeModule } from "./node.ts";

let ownName: string | undefined;

/** "host/pid/start"; the start tells a process from the one that had its id before, as in a restarted container. */
export function processOwner(): string {
  ownName ??= `${hostname()}/${globalThis.process?.pid ?? 0}/${Math.round(performance.timeOrigin).toString(36)}`;
  return ownName;
}

/** True only when the owner was a process of this host and that process is gone. */
export function ownerIsDead(owner: string): boolean {
  const [, host, id, start] = /^([^/]*)\/(\d+)(?:\/(.*))?$/.exec(owner) ?? [];
  const pid = Number(id);
  if (host !== hostname() || !(pid > 0)) return false;
  if (pid === globalThis.process?.pid) return start !== undefined && owner !== processOwner();
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return (error as { code?: string }).code === "ESRCH";
  }
}

function hostname(): string {
  return nodeModule<typeof import("node:os")>("node:os")?.hostname() ?? "unknown";
}
