// Servers of both eras of the protocol: the handshake of 2025, and 2026-07-28, which has none.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { describe, expect, onTestFinished, test } from "vitest";
import { createAgent } from "../../src/index.ts";
import { type McpToolsOptions, mcpTools } from "../../src/mcp/index.ts";
import { scriptedModel } from "../../src/scripted/index.ts";
import type { ToolSource } from "../../src/tools/index.ts";
import { callTool, patient, serveHttp } from "./kit.ts";
import { createServer } from "./server.mjs";

const script = fileURLToPath(new URL("server.mjs", import.meta.url));

/** A child process that speaks one era only; `notes` tells what happened in it. */
function child(era: "older" | "newer"): { source: ToolSource; notes: () => string[] } {
  const folder = mkdtempSync(join(tmpdir(), "bough-mcp-era-"));
  const file = join(folder, "notes");
  const source = mcpTools({ command: process.execPath, args: [script, file, era] });
  onTestFinished(async () => {
    await source.close?.();
    rmSync(folder, { recursive: true });
  });
  const notes = () => readFileSync(file, { encoding: "utf8", flag: "a+" }).split("\n").filter(Boolean);
  return { source, notes };
}

/** A server by HTTP that speaks the newer era only. */
async function newerByHttp(create: () => McpServer): Promise<string> {
  const handler = createMcpHandler(create, { legacy: "reject" });
  const http = createHttpServer(async (request, response) => {
    const answer = await handler.fetch(
      new Request(`http://127.0.0.1${request.url}`, {
        method: request.method!,
        headers: request.headers as Record<string, string>,
        ...(request.method === "POST" && { body: Readable.toWeb(request) as ReadableStream, duplex: "half" as const }),
      }),
    );
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    response.end(Buffer.from(await answer.arrayBuffer()));
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    http.closeAllConnections();
    http.close();
    await handler.close();
  });
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`;
}

async function olderByHttp(create: () => McpServer): Promise<string> {
  const { url, close } = await serveHttp(create);
  onTestFinished(() => close());
  return url;
}

function reach(url: string, options?: McpToolsOptions): ToolSource {
  const source = mcpTools({ url }, options);
  onTestFinished(() => source.close?.());
  return source;
}

describe.each(["older", "newer"] as const)("a server that speaks the %s protocol only", (era) => {
  test("is reached by HTTP", async () => {
    const serve = era === "older" ? olderByHttp : newerByHttp;
    const source = reach(await serve(() => createServer(() => {})));
    expect(await callTool(source, "add", { a: 20, b: 22 })).toEqual({ type: "json", value: { sum: 42 } });
  });

  test("is reached as a child process", async () => {
    const { source } = child(era);
    expect(await callTool(source, "add", { a: 20, b: 22 })).toEqual({ type: "json", value: { sum: 42 } });
  });

  test("hears why a call was cancelled", async () => {
    const { source, notes } = child(era);
    const model = scriptedModel([{ calls: [{ name: "wait", input: {} }] }]);
    const agent = createAgent({ model, tools: [source], permissions: { mode: "allow" } });
    const run = agent.run("go");
    await expect.poll(notes, patient).toEqual(["waiting"]);
    await run.interrupt("enough");
    expect((await run.result).status).toBe("interrupted");
    const cancelled = expect.stringMatching(/^cancelled: AbortError: The run was interrupted: enough\.$/);
    await expect.poll(notes, patient).toEqual(["waiting", cancelled]);
    await agent.close();
  });
});

test("tools that run only as tasks are left out, with one warning, and refused when they are wanted", async () => {
  const create = () => {
    const server = new McpServer({ name: "tasks", version: "1.0.0" }, { capabilities: { tools: {} } });
    const inputSchema = { type: "object" as const };
    server.server.setRequestHandler("tools/list", () => ({
      tools: [
        { name: "plain", inputSchema },
        { name: "research", inputSchema, execution: { taskSupport: "required" } },
        { name: "either", inputSchema, execution: { taskSupport: "optional" } },
      ],
    }));
    return server;
  };
  const url = await olderByHttp(create);
  const warnings: unknown[] = [];
  const logger = { warn: (...words: unknown[]) => void warnings.push(words.join(" ")) };
  const source = reach(url, { name: "tasks", logger });
  for (let i = 0; i < 2; i++) expect(Object.keys(await source.tools())).toEqual(["plain", "either"]);
  expect(warnings).toEqual([
    expect.stringMatching(/^These tools of the MCP server "tasks" are left out, .*: research\.$/),
  ]);
  await expect(reach(url, { include: ["research"], logger }).tools()).rejects.toMatchObject({
    code: "invalid_argument",
    message: expect.stringContaining('no callable tool "research"'),
  });
  expect(warnings).toHaveLength(1);
});
