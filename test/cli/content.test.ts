// bough content: files of a branch, in a store and on a server.

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { bough, boughWith, fill, hasTerminal, scratch, startInTerminal } from "./kit.ts";
import { serveIn } from "./serving.ts";

const store = "sqlite:./.bough/bough.db";
const bytes = Buffer.from(Array.from({ length: 700_000 }, (_, i) => i % 251));
const id = createHash("sha256").update(bytes).digest("hex");

/** A folder with a session "s" in its store and two files. */
async function prepare(): Promise<string> {
  const cwd = scratch();
  mkdirSync(join(cwd, ".bough"));
  await fill(`sqlite:${join(cwd, ".bough/bough.db")}`, async (sessions) => void (await sessions.createSession("s")));
  writeFileSync(join(cwd, "big.bin"), bytes);
  writeFileSync(join(cwd, "my notes.txt"), "hello");
  return cwd;
}

const places = {
  "a store": async () => ({ cwd: await prepare(), where: ["--store", store] }),
  "a server": async () => {
    const cwd = await prepare();
    // No token: the file that the server keeps here has it.
    return { cwd, where: ["--url", (await serveIn(cwd)).url] };
  },
};

describe.each(Object.entries(places))("on %s", (_, open) => {
  test("files are stored, listed, read and removed", async () => {
    const { cwd, where } = await open();
    const content = (...words: string[]) => bough(cwd, "content", ...words, ...where);
    expect(await content("ls", "s")).toMatchObject({ code: 0, stdout: "The branch has no files.\n" });
    const put = await content("put", "s", "big.bin", "my notes.txt");
    expect(put).toMatchObject({ code: 0, stderr: "" });
    expect(put.stdout).toBe(`${id.slice(0, 12)}  700.0 KB  big.bin\n2cf24dba5fb0  5 bytes  my notes.txt\n`);
    const listed = await content("ls", "s");
    expect(listed.stdout).toMatch(/^ID +SINCE +SIZE +TYPE +BRANCH +NAME\n/);
    expect(listed.stdout).toMatch(/2cf24dba5fb0 .* 5 bytes +text\/plain +main +my notes\.txt\n/);
    const { content: all } = JSON.parse((await content("ls", "s", "--json")).stdout);
    expect(all).toMatchObject([{ id, size: bytes.length, name: "big.bin" }, { name: "my notes.txt" }]);

    expect(await content("get", "s", id.slice(0, 6), "-o", "copy.bin")).toMatchObject({ code: 0, stderr: "" });
    expect(readFileSync(join(cwd, "copy.bin")).equals(bytes)).toBe(true);
    expect(readdirSync(cwd).filter((name) => name.endsWith(".part"))).toEqual([]);
    expect(await content("get", "s", "my notes.txt", "-o", "-")).toMatchObject({ code: 0, stdout: "hello" });
    const taken = await content("get", "s", "my notes.txt");
    expect(taken).toMatchObject({ code: 2, stdout: "" });
    expect(taken.stderr).toContain('"my notes.txt" exists already. Pass --output PATH.');

    const asked = await content("rm", "s", "big.bin");
    expect([asked.code, asked.stderr]).toEqual([2, expect.stringContaining("Pass --yes")]);
    expect((await content("rm", "s", "big.bin", "none", "--yes")).stderr).toContain('no file "none"');
    expect(await content("rm", "s", "big.bin", "my notes.txt", "--yes")).toMatchObject({
      stdout: "Removed 2 files.\n",
    });
    expect((await content("ls", "s")).stdout).toBe("The branch has no files.\n");
  });

  test("stdin is stored as it comes", async () => {
    const { cwd, where } = await open();
    const put = await boughWith(cwd, { input: "from a pipe" }, "content", "put", "s", "-", "--json", ...where);
    expect(put).toMatchObject({ code: 0, stderr: "" });
    expect(JSON.parse(put.stdout).content).toMatchObject([{ size: 11 }]);
  });

  test("what can't be done is refused with the reason, and nothing is stored", async () => {
    const { cwd, where } = await open();
    const refused = async (...words: string[]) => {
      const { code, stderr, stdout } = await bough(cwd, "content", ...words, ...where);
      expect(stdout).toBe("");
      return [code, stderr];
    };
    expect(await refused("put", "s", "big.bin", "none")).toEqual([2, 'error: There is no file "none".\n']);
    expect(await refused("put", "s", ".")).toEqual([2, 'error: "." is not a file.\n']);
    expect(await refused("put", "none", "big.bin")).toEqual([1, expect.stringContaining("(session_not_found)")]);
    expect(await refused("put", "s", "big.bin", "my notes.txt", "--name", "x")).toEqual([2, expect.anything()]);
    expect(await refused("get", "s", "none")).toEqual([1, expect.stringContaining("bough content ls lists")]);
    expect((await bough(cwd, "content", "ls", "s", ...where)).stdout).toBe("The branch has no files.\n");
  });
});

test("the name of a stored file can't lead out of the directory, nor hide", async () => {
  const cwd = await prepare();
  await fill(`sqlite:${join(cwd, ".bough/bough.db")}`, async (sessions) => {
    await sessions.putContent("s", { bytes: new Uint8Array([1]), name: "../../out.txt" });
    await sessions.putContent("s", { bytes: new Uint8Array([2]), name: ".profile" });
  });
  expect((await bough(cwd, "content", "get", "s", "../../out.txt")).stdout).toBe("1 byte  out.txt\n");
  await bough(cwd, "content", "get", "s", ".profile");
  expect(existsSync(join(cwd, ".profile"))).toBe(false);
  expect(readdirSync(cwd).filter((name) => /^[0-9a-f]{64}$/.test(name))).toHaveLength(1);
});

test("a session with several branches needs one named, and a fork lists what it inherited", async () => {
  const cwd = await prepare();
  await bough(cwd, "content", "put", "s", "big.bin");
  await fill(`sqlite:${join(cwd, ".bough/bough.db")}`, async (sessions) => {
    await sessions.appendTurn("s", [{ role: "user", content: "Hi" }]);
    await sessions.forkBranch({ sessionId: "s", branchId: "main" }, { newBranchId: "fork" });
  });
  const { code, stderr } = await bough(cwd, "content", "ls", "s");
  expect([code, stderr]).toEqual([
    1,
    "error: Choose a branch with --branch ID. Available: main, fork. (branch_ambiguous)\n",
  ]);
  expect((await bough(cwd, "content", "ls", "s", "--branch", "fork")).stdout).toContain("big.bin");
  expect((await bough(cwd, "content", "rm", "s", "big.bin", "--branch", "fork", "-y")).stderr).toContain(
    "content_not_found",
  );
});

test.skipIf(!hasTerminal)("a person sees how far an upload is, and then what was stored", async () => {
  const cwd = await prepare();
  const { ended } = startInTerminal(cwd, ["content", "put", "s", "big.bin"], { NO_COLOR: "1" });
  const { stdout } = await ended;
  expect(stdout).toContain(`${"█".repeat(24)} 700.0 KB of 700.0 KB  big.bin`);
  expect(stdout.endsWith(`\r\u001b[2K${id.slice(0, 12)}  700.0 KB  big.bin\r\n`)).toBe(true);
});
