// A small MCP server with a tool of every kind. Started by itself it speaks through its standard input and output.

import { appendFileSync } from "node:fs";
import { McpServer } from "@modelcontextprotocol/server";
import { StdioServerTransport, serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const text = (value) => ({ content: [{ type: "text", text: value }] });
const image = { type: "image", data: "QUJD", mimeType: "image/png" };
const sum = z.object({ sum: z.number() });

/** @param {(what: string, why?: string) => void} note told when a call begins or is cancelled */
export function createServer(note) {
  const server = new McpServer({ name: "small", version: "1.0.0" });
  const tool = (name, config, run) => server.registerTool(name, config, run);
  tool(
    "add",
    { description: "Adds.", inputSchema: z.object({ a: z.number(), b: z.number() }), outputSchema: sum },
    ({ a, b }) => ({ ...text(String(a + b)), structuredContent: { sum: a + b } }),
  );
  tool("two.lines", { title: "Two lines", inputSchema: z.object({}) }, () => ({
    content: [...text("one").content, ...text("two").content],
  }));
  tool("picture", { inputSchema: z.object({}), annotations: { readOnlyHint: true, destructiveHint: true } }, () => ({
    content: [...text("a dot").content, image],
  }));
  tool("wipe", { inputSchema: z.object({}), annotations: { destructiveHint: true } }, () => text("gone"));
  tool("fail", { inputSchema: z.object({}) }, () => ({ ...text("no such thing"), isError: true }));
  tool("report", { inputSchema: z.object({}) }, async (_, context) => {
    const { progressToken } = context.mcpReq._meta ?? {};
    const params = { progressToken, progress: 1, total: 2, message: "half" };
    await context.mcpReq.notify({ method: "notifications/progress", params });
    // No answer: what is said right before one may come too late to be shown.
    return new Promise((resolve) => context.mcpReq.signal.addEventListener("abort", resolve));
  });
  tool("wait", { inputSchema: z.object({}) }, (_, context) => {
    note("waiting");
    const { signal } = context.mcpReq;
    return new Promise((resolve) => {
      signal.addEventListener("abort", () => {
        note("cancelled", String(signal.reason));
        resolve(text("late"));
      });
    });
  });
  tool("who", { inputSchema: z.object({}) }, () => text(`${process.pid} ${process.cwd()} ${process.env.GREETING}`));
  tool("die", { inputSchema: z.object({}) }, () => process.exit(1));
  return server;
}

if (process.argv[1] === import.meta.filename) {
  if (process.argv[2] === "refuse") {
    process.stderr.write("the licence has run out\n");
    process.exit(3);
  }
  const [, , file, era] = process.argv;
  const note = (what, why) => appendFileSync(file, `${what}${era && why ? `: ${why}` : ""}\n`);
  if (era === "newer") serveStdio(() => createServer(note), { legacy: "reject" });
  else await createServer(note).connect(new StdioServerTransport());
}
