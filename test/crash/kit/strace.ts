import { spawnSync } from "node:child_process";

/** A command that runs another one and does something to its system calls, e.g. "inject=fsync:error=EIO:when=3". */
export function strace(inject: string): string[] {
  const [calls] = inject.replace("inject=", "").split(":");
  return ["strace", "-f", "-qq", "-o", "/dev/null", "-e", `trace=${calls}`, "-e", inject];
}

/** Skips the test, loudly, where system calls can't be traced. */
export function needsStrace(skip: (notice: string) => void): void {
  const { status, error, stderr } = spawnSync("strace", ["-o", "/dev/null", process.execPath, "--version"]);
  if (status === 0) return;
  const notice = `NO SYSTEM CALL WAS MADE TO FAIL: strace does not work here (${error?.message ?? String(stderr).trim()}).`;
  console.warn(notice);
  skip(notice);
}
