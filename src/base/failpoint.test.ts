import { afterEach, describe, expect, test, vi } from "vitest";

async function load(armed: string | undefined) {
  vi.resetModules();
  vi.stubEnv("BOUGH_FAILPOINT", armed);
  const kill = vi.spyOn(process, "kill").mockReturnValue(true);
  return { kill, ...(await import("./failpoint.ts")) };
}

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

describe("failpoint", () => {
  test("nothing happens when none is armed", async () => {
    const { failpoint, failpoints, kill } = await load(undefined);
    for (const name of failpoints) failpoint(name);
    expect(kill).not.toHaveBeenCalled();
  });

  test("the armed one kills at its first pass, the others don't", async () => {
    const { failpoint, failpoints, kill } = await load("sqlite.commit.begun");
    for (const name of failpoints) if (name !== "sqlite.commit.begun") failpoint(name);
    expect(kill).not.toHaveBeenCalled();
    failpoint("sqlite.commit.begun");
    expect(kill).toHaveBeenCalledExactlyOnceWith(process.pid, "SIGKILL");
  });

  test("with a number it kills at that pass", async () => {
    const { failpoint, kill } = await load("file.wal.synced:3");
    failpoint("file.wal.synced");
    failpoint("file.wal.synced");
    expect(kill).not.toHaveBeenCalled();
    failpoint("file.wal.synced");
    expect(kill).toHaveBeenCalledOnce();
  });

  test("no name is listed twice", async () => {
    const { failpoints } = await load(undefined);
    expect(new Set(failpoints).size).toBe(failpoints.length);
  });
});
