import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { ownerIsDead, processOwner } from "./owner.ts";

describe("owner", () => {
  test("this process is named by host and process id, and lives", () => {
    expect(processOwner().endsWith(`/${process.pid}`)).toBe(true);
    expect(ownerIsDead(processOwner())).toBe(false);
  });

  test("a process of this host that has ended is dead, one that runs is not", async () => {
    const child = spawn(process.execPath, ["-e", "process.stdin.resume()"], { stdio: ["pipe", "ignore", "ignore"] });
    await once(child, "spawn");
    const owner = processOwner().replace(/\d+$/, String(child.pid));
    expect(ownerIsDead(owner)).toBe(false);
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(ownerIsDead(owner)).toBe(true);
  });

  test("nothing is known of another host, nor of an owner that is no process", () => {
    const host = processOwner().replace(/\/\d+$/, "");
    for (const owner of [
      "elsewhere/1",
      "",
      "/",
      host,
      `${host}/`,
      `${host}/x`,
      `${host}/0`,
      `${host}/-1`,
      `${host}/1.5`,
    ]) {
      expect(ownerIsDead(owner), owner).toBe(false);
    }
  });
});
