// Who holds a claim: this process, named so that another process on the same host can tell when it is dead.

interface Host {
  hostname(): string;
}

let ownName: string | undefined;

/** "host/pid"; unique among the live processes of a host. */
export function processOwner(): string {
  ownName ??= `${hostname()}/${globalThis.process?.pid ?? 0}`;
  return ownName;
}

/** True only when the owner was a process of this host and that process is gone. */
export function ownerIsDead(owner: string): boolean {
  const slash = owner.lastIndexOf("/");
  const pid = Number(owner.slice(slash + 1));
  if (owner.slice(0, slash) !== hostname() || !Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return (error as { code?: string }).code === "ESRCH";
  }
}

function hostname(): string {
  const os = globalThis.process?.getBuiltinModule?.("node:os") as Host | undefined;
  return os?.hostname() ?? "unknown";
}
