import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { type McpToolsOptions, mcpTools } from "../../src/mcp/index.ts";
import type { McpResult } from "../../src/mcp/result.ts";
import { prepareTools, type ToolSource } from "../../src/tools/index.ts";
import { contextFor } from "../tools/kit.ts";
import { callTool, patient } from "./kit.ts";

const script = fileURLToPath(new URL("server.mjs", import.meta.url));
const folder = realpathSync(mkdtempSync(join(tmpdir(), "bough-mcp-")));
const notes = join(folder, "notes");
const opened: ToolSource[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((source) => source.close?.()));
});

afterAll(() => rmSync(folder, { recursive: true }));

function open(options?: McpToolsOptions, args = [script, notes]): ToolSource {
  const env = { GREETING: "hello" };
  const source = mcpTools({ command: process.execPath, args, env, cwd: folder }, options);
  opened.push(source);
  return source;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function pidOf(source: ToolSource): Promise<number> {
  return Number.parseInt(String((await callTool(source, "who")).value), 10);
}

describe("the tools of a child process", () => {
  test("have legal names, descriptions and the server's schemas", async () => {
    const tools = await prepareTools([open({ prefix: "small." })]);
    expect([...tools.keys()].slice(0, 3)).toEqual(["small_add", "small_two_lines", "small_picture"]);
    expect(tools.get("small_add")).toMatchObject({
      description: "Adds.",
      inputSchema: { type: "object", properties: { a: { type: "number" } }, required: ["a", "b"] },
      timeoutMs: 60_000,
    });
    expect(tools.get("small_two_lines")?.description).toBe("Two lines");
  });

  test.each([
    [false, ["retry", true]],
    [true, ["read", false]],
  ])(
    "need permission, whatever the server hints at, unless its hints are trusted (%s)",
    async (trustHints, reading) => {
      const tools = await prepareTools([open({ trustHints })]);
      const said = (name: string) => [tools.get(name)?.effect, tools.get(name)?.permission];
      expect([said("add"), said("picture"), said("wipe")]).toEqual([["retry", true], reading, ["retry", true]]);
    },
  );

  test("have what the options say instead, and only those that are included", async () => {
    const tools = await prepareTools([
      open({ include: ["picture", "wipe"], effect: "once", permission: false, timeoutMs: 5 }),
    ]);
    expect([...tools.keys()]).toEqual(["picture", "wipe"]);
    for (const tool of tools.values()) expect(tool).toMatchObject({ effect: "once", permission: false, timeoutMs: 5 });
  });

  test("are refused when one is wanted that the server has not", async () => {
    await expect(open({ name: "small", include: ["fly"] }).tools()).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringMatching(/^The MCP server "small" has no callable tool "fly"\. Available: add, two\.lines/),
    });
  });

  test("give structured content as JSON, text as text, images as content, and failures as errors", async () => {
    const source = open();
    expect(await callTool(source, "add", { a: 1, b: 2 })).toEqual({ type: "json", value: { sum: 3 } });
    expect(await callTool(source, "two_lines")).toEqual({ type: "text", value: "one\ntwo" });
    expect(await callTool(source, "picture")).toEqual({
      type: "content",
      value: [
        { type: "text", text: "a dot" },
        { type: "file", mediaType: "image/png", data: { type: "data", data: "QUJD" } },
      ],
    });
    expect(await callTool(source, "fail")).toEqual({ type: "error-text", value: "no such thing" });
    expect(await callTool(source, "add", { a: "x" })).toMatchObject({ type: "error-text" });
  });

  test("show their progress", async () => {
    const stop = new AbortController();
    const context = contextFor({ signal: stop.signal });
    const running = callTool(open(), "report", {}, context);
    await expect.poll(() => context.shown, patient).toEqual([{ progress: 1, total: 2, message: "half" }]);
    stop.abort();
    await expect(running).rejects.toMatchObject({ code: "aborted" });
  });

  test("run in the folder and with the variables they are given", async () => {
    expect((await callTool(open(), "who")).value).toMatch(new RegExp(`^\\d+ ${folder} hello$`));
  });

  test("are told when a call is aborted", async () => {
    const stop = new AbortController();
    const running = callTool(open(), "wait", {}, contextFor({ signal: stop.signal }));
    const said = () => readFileSync(notes, { encoding: "utf8", flag: "a+" }).trim().split("\n");
    await expect.poll(said, patient).toEqual(["waiting"]);
    stop.abort();
    await expect(running).rejects.toMatchObject({ code: "aborted" });
    await expect.poll(said, patient).toEqual(["waiting", "cancelled"]);
  });
});

describe("the child process", () => {
  test("is one for all who ask at the same time (McpConnection-1)", async () => {
    const source = open();
    const pids = await Promise.all([pidOf(source), pidOf(source), pidOf(source)]);
    expect(new Set(pids).size).toBe(1);
  });

  test("is started again when it died between two calls; the call it died of fails (McpConnection-2)", async () => {
    const tools = await prepareTools([open()]);
    const call = async (name: string) => (await tools.get(name)?.execute?.({}, contextFor())) as McpResult;
    const pid = async () => Number.parseInt((await call("who")).content?.[0]?.text ?? "", 10);
    const first = await pid();
    await expect(call("die")).rejects.toThrow();
    expect(isAlive(first)).toBe(false);
    const second = await pid();
    expect(second).not.toBe(first);
    expect(await pid()).toBe(second);
  });

  test("ends with close(), and none is started after it (McpConnection-3)", async () => {
    const source = open();
    const tools = await prepareTools([source]);
    const pid = await pidOf(source);
    await source.close?.();
    await expect.poll(() => isAlive(pid), patient).toBe(false);
    await expect(source.tools()).rejects.toMatchObject({ code: "aborted" });
    await expect(tools.get("who")?.execute?.({}, contextFor())).rejects.toMatchObject({ code: "aborted" });
    await source.close?.();
  });

  test("that can't be reached is named, with what it complained about, and asked again next time", async () => {
    const source = open({ name: "small" }, [script, "refuse"]);
    for (let i = 0; i < 2; i++) {
      await expect(source.tools()).rejects.toMatchObject({
        code: "dependency_missing",
        message: expect.stringMatching(/^The MCP server "small" can't be reached: .*the licence has run out$/),
      });
    }
  });

  test("whose program is not there yet is found when it is", async () => {
    const command = join(folder, "late");
    const source = mcpTools({ command });
    opened.push(source);
    await expect(source.tools()).rejects.toMatchObject({ code: "dependency_missing" });
    writeFileSync(command, `#!/bin/sh\nexec "${process.execPath}" "${script}" "${notes}"\n`, { mode: 0o755 });
    expect(await callTool(source, "two_lines")).toEqual({ type: "text", value: "one\ntwo" });
  });
});
