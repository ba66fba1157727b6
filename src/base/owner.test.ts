import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { ownerIsDead, processOwner } from "./owner.ts";

const host = processOwner().split("/")[0]!;

describe("owner", () => {
  test("this process is named by host, process id and start, and lives", () => {
    expect(processOwner()).toMatch(new RegExp(`/${process.pid}/[0-9a-z]+$`));
    expect(ownerIsDead(processOwner())).toBe(false);
  });

  test("a process that had our id before us, as in a restarted container, is dead", () => {
    expect(ownerIsDead(`${host}/${process.pid}/before`)).toBe(true);
  });

  test("a process of this host that has ended is dead, one that runs is not", async () => {
    const child = spawn(process.execPath, ["-e", "process.stdin.resume()"], { stdio: ["pipe", "ignore", "ignore"] });
    await once(child, "spawn");
    const owner = `${host}/${child.pid}/start`;
    expect(ownerIsDead(owner)).toBe(false);
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(ownerIsDead(owner)).toBe(true);
  });

  test("nothing is known of another host, nor of an owner that is no process", () => {
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
      `${host}/${process.pid}`,
    ]) {
      expect(ownerIsDead(owner), owner).toBe(false);
    }
  });
});
