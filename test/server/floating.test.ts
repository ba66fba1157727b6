// Errors that tools let float, in a process of its own that serves two tenants: what is fatal is fatal for one run.

import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { askAt, freshDirectory, scope, until } from "./kit.ts";

const program = fileURLToPath(new URL("./floating.mjs", import.meta.url));

async function start(path: string) {
  const child = spawn(process.execPath, [program, JSON.stringify({ path })]);
  onTestFinished(() => void child.kill("SIGKILL"));
  const gone = new Promise<number | null>((resolve) => child.once("exit", resolve));
  const said = { errors: "" };
  child.stderr.on("data", (data) => {
    said.errors += data;
  });
  const url = await new Promise<string>((resolve, reject) => {
    createInterface(child.stdout).once("line", resolve);
    void gone.then((code) => reject(new Error(`The server ended with ${code}: ${said.errors}`)));
  });
  const ask = (tenant: string, method: string, route: string, body?: unknown) =>
    askAt(url, method, route, body, { "x-tenant": tenant });
  const types = async (tenant: string) =>
    (await ask(tenant, "GET", "/sessions/s/branches/main/events")).body.events.map(
      ({ type, status }: { type: string; status?: string }) => (status ? `${type} ${status}` : type),
    );
  const ended = (tenant: string) =>
    until(async () => (await types(tenant)).at(-1).match(/turn\.(ended|committed).*/)?.[0]);
  return { child, gone, said, ask, types, ended };
}

test.each(["timer", "rejection"])("an error that floats from a %s fails its run, and no other", async (tool) => {
  const path = join(freshDirectory(), "bough.db");
  const { ask, ended, said, child, gone, types } = await start(path);
  for (const tenant of ["a", "b"]) await ask(tenant, "POST", "/sessions", { sessionId: "s" });
  await ask("b", "POST", `${scope}/inputs`, { input: "call slow" });
  await ask("a", "POST", `${scope}/inputs`, { input: `call ${tool}` });
  expect(await ended("a")).toBe("turn.ended failed");
  expect(await ended("b")).toBe("turn.committed");
  const { runs } = (await ask("a", "GET", `${scope}/runs`)).body;
  expect(runs).toMatchObject([{ status: "failed" }]);
  expect(said.errors).toContain(`The tool "${tool}" threw an error outside its call; its run fails`);
  const before = await types("a");
  child.kill("SIGKILL");
  await gone;

  // It has its end, so that nobody takes it up again; and the branch is free.
  const again = await start(path);
  await again.ask("b", "POST", `${scope}/inputs`, { input: "call slow" });
  expect(await again.ended("b")).toBe("turn.committed");
  expect(await again.types("a")).toEqual(before);
  await again.ask("a", "POST", `${scope}/inputs`, { input: "Hi" });
  expect(await again.ended("a")).toBe("turn.committed");
});

test("an error that floats after its run is over is logged", async () => {
  const { child, ask, ended, said } = await start(join(freshDirectory(), "bough.db"));
  await ask("a", "POST", "/sessions", { sessionId: "s" });
  await ask("a", "POST", `${scope}/inputs`, { input: "call late" });
  expect(await ended("a")).toBe("turn.committed");
  child.stdin.write("late\n");
  await until(() => said.errors.includes("its run had ended"));
  expect(said.errors).toContain("too late");
  expect((await ask("a", "GET", "/health")).status).toBe(200);
});

test.each(["throw", "reject"])("an error of nobody's (%s) ends the process as it does everywhere", async (how) => {
  const { child, gone, said } = await start(join(freshDirectory(), "bough.db"));
  child.stdin.write(`${how}\n`);
  expect(await gone).toBe(1);
  expect(said.errors).toContain("Error: of nobody's");
  expect(said.errors).not.toContain("warned:");
});
