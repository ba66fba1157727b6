import { McpServer } from "@modelcontextprotocol/server";
import { afterEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { createAgent } from "../../src/index.ts";
import { type McpToolsOptions, mcpTools } from "../../src/mcp/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { prepareTools, type ToolSource } from "../../src/tools/index.ts";
import { contextFor } from "../tools/kit.ts";
import { callTool, type HttpServer, patient, serveHttp } from "./kit.ts";
import { createServer } from "./server.mjs";

const cleaning: (() => Promise<unknown> | undefined)[] = [];

afterEach(async () => {
  for (const clean of cleaning.splice(0).reverse()) await clean();
});

async function open(create = () => createServer(() => {}), options?: McpToolsOptions) {
  const server = await serveHttp(create);
  const source = mcpTools({ url: server.url, headers: { authorization: "Bearer secret" } }, options);
  cleaning.push(
    () => server.close(),
    () => source.close?.(),
  );
  return { server, source } satisfies { server: HttpServer; source: ToolSource };
}

describe("the tools of a server by HTTP", () => {
  test("are listed and called, with the headers given", async () => {
    const { server, source } = await open();
    expect(await callTool(source, "add", { a: 20, b: 22 })).toEqual({ type: "json", value: { sum: 42 } });
    expect(server.requests.map(({ headers }) => headers.authorization)).not.toContain(undefined);
  });

  test("are found on every page of the list", async () => {
    const pages = [["a", "b"], ["c"], ["b!", "d"]];
    const { source } = await open(() => pagedServer(pages));
    expect(Object.keys(await source.tools())).toEqual(["a", "b", "c", "b_", "d"]);
  });

  test("are told when a call is aborted", async () => {
    const notes: string[] = [];
    const { source } = await open(() => createServer((what) => notes.push(what)));
    const stop = new AbortController();
    const running = callTool(source, "wait", {}, contextFor({ signal: stop.signal }));
    await expect.poll(() => notes, patient).toEqual(["waiting"]);
    stop.abort();
    await expect(running).rejects.toMatchObject({ code: "aborted" });
    await expect.poll(() => notes, patient).toEqual(["waiting", "cancelled"]);
  });

  test("are told why in words when a run is interrupted", async () => {
    const reasons: unknown[] = [];
    const { source } = await open(() => {
      const server = new McpServer({ name: "test", version: "1.0.0" });
      server.registerTool("wait", { inputSchema: z.object({}) }, (_, { mcpReq: { signal } }) => {
        return new Promise((resolve) => {
          signal.addEventListener("abort", () => {
            reasons.push(signal.reason);
            resolve({ content: [] });
          });
          void run.interrupt("enough");
        });
      });
      return server;
    });
    const model = scriptedModel([{ calls: [{ name: "wait", input: {} }] }]);
    const agent = createAgent({ model, tools: [source], permissions: { mode: "allow" } });
    cleaning.push(() => agent.close());
    const run = agent.run("Go");
    await expect.poll(() => reasons.map(String), patient).toEqual(["AbortError: The run was interrupted: enough."]);
  });

  test("are called in a new session when the server has forgotten the old one (McpConnection-2)", async () => {
    const { server, source } = await open();
    const who = (await prepareTools([source])).get("two_lines")!;
    server.forget();
    expect(await who.execute?.({}, contextFor())).toMatchObject({ content: [{ text: "one" }, { text: "two" }] });
    expect(server.sessions).toBe(1);
  });

  test("are of a session that close() ends", async () => {
    const { server, source } = await open();
    await source.tools();
    expect(server.sessions).toBe(1);
    await source.close?.();
    expect(server.sessions).toBe(0);
  });
});

test("a server that is not there is named by its host", async () => {
  const { url, close } = await serveHttp(() => createServer(() => {}));
  await close();
  const source = mcpTools({ url });
  await expect(source.tools()).rejects.toMatchObject({
    code: "dependency_missing",
    message: expect.stringContaining(`The MCP server "${new URL(url).host}" can't be reached: `),
    retryable: true,
  });
  await source.close?.();
});

test("two servers with a tool of the same name are both named", async () => {
  const one = await open(undefined, { name: "one", include: ["add"] });
  const two = await open(undefined, { name: "two", include: ["add"] });
  await expect(prepareTools([one.source, two.source])).rejects.toThrow(
    'Two tools are named "add": one from the MCP server "one", one from the MCP server "two".',
  );
});

function pagedServer(pages: string[][]): McpServer {
  const paged = new McpServer({ name: "paged", version: "1.0.0" }, { capabilities: { tools: {} } });
  paged.server.setRequestHandler("tools/list", ({ params }) => {
    const page = Number(params?.cursor ?? 0);
    const tools = pages[page]!.map((name) => ({ name, inputSchema: { type: "object" as const } }));
    return page + 1 < pages.length ? { tools, nextCursor: String(page + 1) } : { tools };
  });
  return paged;
}
