// Wall clocks of processes that a test sets: libfaketime, where it is installed or can be.

import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";

const libraries = ["x86_64", "aarch64"].map((arch) => `/usr/lib/${arch}-linux-gnu/faketime/libfaketimeMT.so.1`);

/** The library, or nothing and a loud word where it is missing. */
export const faketime = findLibrary();

function findLibrary(): string | undefined {
  const found = () => libraries.find((path) => existsSync(path));
  if (!found() && process.getuid?.() === 0 && existsSync("/etc/debian_version")) install();
  if (found()) return found();
  const why = "libfaketime is not installed";
  console.warn(`\n*** THE TESTS OF CLOCKS THAT JUMP ARE SKIPPED: ${why}. ***\n`);
  if (process.env.CI === "true") throw new Error(`${why}, and CI may not skip these tests.`);
  return undefined;
}

function install(): void {
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  for (const args of [["update"], ["install", "-y", "--no-install-recommends", "libfaketime"]]) {
    try {
      execFileSync("apt-get", ["-q", "-o", "DPkg::Lock::Timeout=120", ...args], { stdio: "ignore", env });
    } catch {
      // findLibrary() says what came of it.
    }
  }
}
