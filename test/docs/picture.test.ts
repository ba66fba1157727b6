import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { test } from "vitest";

const root = new URL("../../", import.meta.url).pathname;

test("the README's picture of kill -9 shows what a killed and resumed run prints", async () => {
  await promisify(execFile)(process.execPath, ["scripts/kill-picture.mjs", "--check"], { cwd: root });
});
