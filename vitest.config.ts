import { accessSync, constants } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { defineConfig } from "vitest/config";

/** Memory stands in for a disk where it can: what these tests prove survives the process, not the machine (test:power does). */
function placeForFiles(): string {
  try {
    accessSync("/dev/shm", constants.W_OK);
    return "/dev/shm";
  } catch {
    return tmpdir();
  }
}

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts"],
    testTimeout: 120_000,
    hookTimeout: 60_000,
    // Many of these tests wait for processes, servers and clocks, so no processor is kept free.
    maxWorkers: availableParallelism(),
    env: { TMPDIR: placeForFiles() },
  },
});
