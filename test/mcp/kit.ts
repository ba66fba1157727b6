import { randomUUID } from "node:crypto";
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { type McpServer, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import { prepareTools, runTool, type ToolContext, type ToolSource } from "../../src/tools/index.ts";
import { contextFor, hastyClock } from "../tools/kit.ts";

/** How long a poll may take on a busy machine. */
export const patient = { timeout: 30_000 };

/** Runs one tool of a source with the source's own times left out. */
export async function callTool(source: ToolSource, name: string, input = {}, context: ToolContext = contextFor()) {
  const tools = await prepareTools([source]);
  const { timeoutMs: _, ...tool } = tools.get(name)!;
  return runTool(tool, input, context, { clock: hastyClock(), random: () => 0 });
}

export interface HttpServer {
  readonly url: string;
  /** The requests so far. */
  readonly requests: { readonly method: string; readonly headers: IncomingMessage["headers"] }[];
  /** How many sessions there are now. */
  readonly sessions: number;
  /** As after a restart: requests of a session from before are answered with 404. */
  forget(): void;
  close(): Promise<void>;
}

/** Serves MCP on loopback, one server for each session. */
export async function serveHttp(create: () => McpServer): Promise<HttpServer> {
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();
  const requests: HttpServer["requests"] = [];
  const http = createHttpServer(async (request, response) => {
    requests.push({ method: request.method!, headers: request.headers });
    const id = request.headers["mcp-session-id"] as string | undefined;
    const transport = id === undefined ? await openSession(create(), sessions) : sessions.get(id);
    if (!transport) return void response.writeHead(404).end();
    await answer(transport, request, response);
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`,
    requests,
    get sessions() {
      return sessions.size;
    },
    forget: () => sessions.clear(),
    close: () =>
      new Promise((resolve) => {
        http.close(() => resolve());
        http.closeAllConnections();
      }),
  };
}

async function openSession(server: McpServer, sessions: Map<string, WebStandardStreamableHTTPServerTransport>) {
  const transport = new WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => void sessions.set(id, transport),
    onsessionclosed: (id) => void sessions.delete(id),
  });
  await server.connect(transport);
  return transport;
}

async function answer(
  transport: WebStandardStreamableHTTPServerTransport,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const hasBody = request.method === "POST";
  const { status, headers, body } = await transport.handleRequest(
    new Request(`http://127.0.0.1${request.url}`, {
      method: request.method!,
      headers: request.headers as Record<string, string>,
      ...(hasBody && { body: Readable.toWeb(request) as ReadableStream, duplex: "half" as const }),
    }),
  );
  response.writeHead(status, Object.fromEntries(headers));
  if (!body) return void response.end();
  response.flushHeaders();
  for await (const chunk of body) response.write(chunk);
  response.end();
}
