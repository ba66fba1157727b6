// Tools of MCP servers.

import type { Tool as ServerTool } from "@modelcontextprotocol/client";
import { BoughError } from "../base/errors.ts";
import { type AnyTool, defineTool, type PermissionRule, type ToolEffect, type ToolSource } from "../tools/index.ts";
import { type McpAddress, type McpCommand, McpConnection } from "./connection.ts";
import { legalNames } from "./names.ts";
import { type McpResult, mcpOutput } from "./result.ts";

export type { McpAddress, McpCommand } from "./connection.ts";

/** What is made of a server's tools. */
export interface McpToolsOptions {
  /** What errors call the server (default: its command or its host). */
  readonly name?: string;
  /** Put before every tool's name (default: nothing). */
  readonly prefix?: string;
  /** Which tools, by the names the server gives them (default: all). */
  readonly include?: readonly string[];
  /**
   * Believes what the server says of its own tools (default false). Then a tool with `readOnlyHint` needs no permission and
   * has the effect "read". Only for a server that you trust as much as your own code: a hint is nothing but its word.
   */
  readonly trustHints?: boolean;
  /** Of every tool (default: "retry"; "read" for those that only read, with `trustHints`). */
  readonly effect?: ToolEffect;
  /** Of every tool (default: true; false for those that only read, with `trustHints`). */
  readonly permission?: PermissionRule;
  /** How long a call may take (default 60,000). */
  readonly timeoutMs?: number;
  /** Told of tools that are left out because they can't be called (default: the console). */
  readonly logger?: { warn(...words: unknown[]): void };
}

/**
 * The tools of an MCP server, which is started or reached when they are first asked for. Each needs permission unless the
 * options say otherwise. The list is read once: a server that changes it later is not heard.
 */
export function mcpTools(server: McpCommand | McpAddress, options: McpToolsOptions = {}): ToolSource {
  const name = options.name ?? ("command" in server ? server.command : new URL(server.url).host);
  const connection = new McpConnection(server, name);
  const { logger = console } = options;
  let isTold = false;
  const leaveOut = (tools: readonly string[]) => {
    if (isTold || tools.length === 0) return;
    isTold = true;
    logger.warn(
      `The MCP server "${name}" has tools that Bough can't call, because they run as tasks: ${tools.join(", ")}.`,
    );
  };
  return {
    name: `the MCP server "${name}"`,
    async tools() {
      const listed = await connection.listTools();
      const taskOnly = listed.filter(isTaskOnly).map((tool) => tool.name);
      if (!options.include) leaveOut(taskOnly);
      const callable = listed.filter((tool) => !taskOnly.includes(tool.name));
      const chosen = choose(callable, options.include, name);
      const names = legalNames(
        chosen.map((tool) => tool.name),
        options.prefix ?? "",
      );
      return Object.fromEntries(chosen.map((tool) => [names.get(tool.name), toolOf(tool, connection, options)]));
    },
    close: () => connection.close(),
  };
}

/** Whether the server takes its calls only as tasks, which are asked after instead of answered. */
function isTaskOnly(tool: ServerTool): boolean {
  const { execution } = tool as { execution?: { taskSupport?: unknown } };
  return execution?.taskSupport === "required";
}

function choose(tools: readonly ServerTool[], include: readonly string[] | undefined, name: string) {
  if (!include) return tools;
  const missing = include.find((wanted) => !tools.some((tool) => tool.name === wanted));
  if (missing === undefined) return tools.filter((tool) => include.includes(tool.name));
  const there = tools.map((tool) => tool.name);
  const sentence = `The MCP server "${name}" has no tool "${missing}" that can be called; it has: ${there.join(", ")}.`;
  throw new BoughError("invalid_argument", sentence, { data: { server: name, tool: missing, tools: there } });
}

function toolOf(tool: ServerTool, connection: McpConnection, options: McpToolsOptions): AnyTool {
  const { annotations: hints, description = tool.title } = tool;
  const isReading = options.trustHints === true && hints?.readOnlyHint === true;
  const { effect = isReading ? "read" : "retry", permission = !isReading, timeoutMs = 60_000 } = options;
  return defineTool({
    ...(description !== undefined && { description }),
    // The server checks what it is sent.
    input: { jsonSchema: tool.inputSchema },
    effect,
    permission,
    timeoutMs,
    execute: (input, { signal, progress }) =>
      connection.call({ name: tool.name, arguments: input, signal, onProgress: progress }),
    toOutput: (result) => mcpOutput(result as McpResult),
  });
}
