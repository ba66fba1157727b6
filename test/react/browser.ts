// A browser for the tests: Debian's Chromium, without a window.

import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

const executablePath = "/usr/bin/chromium";

/** Why there is no browser to test with; undefined when there is one. */
export const missing = findBrowser();

function findBrowser(): string | undefined {
  const isRootDebian = process.getuid?.() === 0 && existsSync("/etc/debian_version");
  if (!existsSync(executablePath) && isRootDebian) install();
  if (existsSync(executablePath)) return undefined;
  const why = `${executablePath} is not there`;
  console.warn(`\n*** THE TESTS IN A BROWSER ARE SKIPPED: ${why}. ***\n`);
  if (process.env.CI === "true") throw new Error(`${why}, and CI may not skip these tests.`);
  return why;
}

/** Other tests may install something, too, and apt works for one at a time. */
function install(): void {
  for (let tries = 0; tries < 5 && !existsSync(executablePath); tries++) {
    if (tries > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3000);
    apt("update");
    apt("install", "-y", "--no-install-recommends", "chromium");
  }
}

function apt(...args: string[]): void {
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  try {
    execFileSync("apt-get", ["-q", "-o", "DPkg::Lock::Timeout=120", ...args], { stdio: "ignore", env });
  } catch {
    // Whether the browser is there says what came of it.
  }
}

export function launch(): Promise<Browser> {
  const quiet = ["--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
  return chromium.launch({ executablePath, args: ["--headless", "--no-sandbox", ...quiet] });
}
