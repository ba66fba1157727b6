// McpConnection: owns the one connection to a server, and its child process, if any.
//   McpConnection-1. There is at most one connection; callers that need it while it is being opened wait for the same one.
//   McpConnection-2. A lost connection is reopened, once per call. A call that may have reached the server is never
//       sent again.
//   McpConnection-3. After close() there is no connection and none is opened.
//   McpConnection-4. Both generations of the protocol are supported: the newer is tried first, and a server that does not know it gets the
//       older handshake. The result is used for the next connections, until one fails.

import type { Client, Tool, Transport } from "@modelcontextprotocol/client";
import { BoughError } from "../base/errors.ts";
import type { JsonObject } from "../base/json.ts";

/** A server that runs as a child process and communicates over its standard input and output. */
export interface McpCommand {
  readonly command: string;
  readonly args?: readonly string[];
  /** Environment variables for the process, in addition to a few that are safe to inherit. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** A server reached over streamable HTTP. */
export interface McpAddress {
  readonly url: string | URL;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface McpCall {
  readonly name: string;
  readonly arguments: JsonObject;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: JsonObject) => void;
}

type Sdk = typeof import("@modelcontextprotocol/client");

interface Link {
  readonly client: Client;
  readonly transport: Transport & { terminateSession?(): Promise<void> };
}

/** The longest timer: the run enforces timeouts itself, since it knows about retries and about questions to a person. */
const noTimeoutMs = 2 ** 31 - 1;
/** How long a child process may take to answer the first request; a silent one speaks the older protocol. */
const probeMs = 20_000;
/** How much of a child process's standard error is quoted if it can't be reached. */
const complaintLength = 500;

export class McpConnection {
  readonly #server: McpCommand | McpAddress;
  readonly #name: string;
  #link: Promise<Link> | undefined;
  /** McpConnection-4. For a child process, the probe needs a separate process. */
  #isOlder = false;
  #isClosed = false;

  constructor(server: McpCommand | McpAddress, name: string) {
    this.#server = server;
    this.#name = name;
  }

  /** All tools of the server, from all pages. */
  async listTools(): Promise<readonly Tool[]> {
    const { client } = await this.#open();
    return (await client.listTools()).tools;
  }

  async call(call: McpCall): Promise<unknown> {
    const opened = this.#open();
    try {
      return await send(await opened, call);
    } catch (error) {
      if (call.signal.aborted || !isUnsent(error)) throw error;
      this.#forget(opened);
      return send(await this.#open(), call);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const opened = this.#link;
    this.#link = undefined;
    // A connection that failed to open leaves nothing to close.
    const link = await opened?.catch(() => undefined);
    if (link) await end(link);
  }

  #open(): Promise<Link> {
    if (this.#isClosed) throw new BoughError("aborted", `The MCP server "${this.#name}" is closed.`);
    if (this.#link) return this.#link;
    const opening: Promise<Link> = this.#connect(() => this.#forget(opening));
    this.#link = opening;
    opening.catch(() => this.#forget(opening));
    return opening;
  }

  #forget(link: Promise<Link>): void {
    if (this.#link === link) this.#link = undefined;
  }

  async #connect(onLost: () => void): Promise<Link> {
    const { Client, StreamableHTTPClientTransport } = await loadSdk();
    const isChild = "command" in this.#server;
    const versionNegotiation = { mode: "auto", ...(isChild && { probe: { timeoutMs: probeMs } }) } as const;
    const client = new Client({ name: "bough", version: "1.0.0" }, { versionNegotiation });
    client.onclose = onLost;
    if ("command" in this.#server) {
      const { transport, complaint } = await childOf(this.#server);
      return this.#linked({ client, transport }, complaint);
    }
    const { url, headers } = this.#server;
    const transport = new StreamableHTTPClientTransport(new URL(url), headers && { requestInit: { headers } });
    return this.#linked({ client, transport }, () => "");
  }

  async #linked(link: Link, complaint: () => string): Promise<Link> {
    try {
      await link.client.connect(link.transport, this.#isOlder ? { prior: { kind: "legacy" } } : {});
      this.#isOlder = link.client.getProtocolEra() === "legacy";
      return link;
    } catch (cause) {
      this.#isOlder = false;
      await link.client.close();
      const why = [cause instanceof Error ? cause.message : String(cause), complaint()].filter(Boolean).join("; ");
      const sentence = `The MCP server "${this.#name}" can't be reached: ${why}`;
      throw new BoughError("dependency_missing", sentence, { data: { server: this.#name }, cause, retryable: true });
    }
  }
}

async function loadSdk(): Promise<Sdk> {
  try {
    return await import("@modelcontextprotocol/client");
  } catch (cause) {
    const sentence =
      "MCP servers need a package that is not installed: run `npm install @modelcontextprotocol/client`.";
    throw new BoughError("dependency_missing", sentence, {
      data: { package: "@modelcontextprotocol/client" },
      cause,
    });
  }
}

/** The child process, and the end of its standard error. */
async function childOf({ command, args = [], env, cwd }: McpCommand) {
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  const transport = new StdioClientTransport({
    command,
    args: [...args],
    ...(env && { env: { ...env } }),
    ...(cwd !== undefined && { cwd }),
    stderr: "pipe",
  });
  let written = "";
  transport.stderr?.on("data", (chunk) => {
    written = `${written}${chunk}`.slice(-complaintLength);
  });
  return { transport, complaint: () => written.trim() };
}

function send({ client }: Link, { name, arguments: input, signal, onProgress }: McpCall): Promise<unknown> {
  const onprogress = (progress: object) => onProgress({ ...progress });
  return client.callTool({ name, arguments: input }, { signal, timeout: noTimeoutMs, onprogress });
}

/** McpConnection-2. Nothing was sent, or the server refused the request because the session has expired. */
function isUnsent(error: unknown): boolean {
  const { code, status } = Object(error) as { code?: unknown; status?: unknown };
  return code === "NOT_CONNECTED" || status === 404;
}

async function end({ client, transport }: Link): Promise<void> {
  try {
    await transport.terminateSession?.();
  } catch {
    // The server is gone or keeps its sessions; either way ours is over.
  }
  await client.close();
}
