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
  /** Of every tool (default: "read" for those that the server says only read, "retry" for the others). */
  readonly effect?: ToolEffect;
  /** Of every tool (default: true for those that the server says destroy something, false for the others). */
  readonly permission?: PermissionRule;
  /** How long a call may take (default 60,000). */
  readonly timeoutMs?: number;
}

/**
 * The tools of an MCP server, which is started or reached when they are first asked for. What a server says about its own
 * tools is believed unless the options say otherwise. The list is read once: a server that changes it later is not heard.
 */
export function mcpTools(server: McpCommand | McpAddress, options: McpToolsOptions = {}): ToolSource {
  const name = options.name ?? ("command" in server ? server.command : new URL(server.url).host);
  const connection = new McpConnection(server, name);
  return {
    name: `the MCP server "${name}"`,
    async tools() {
      const chosen = choose(await connection.listTools(), options.include, name);
      const names = legalNames(
        chosen.map((tool) => tool.name),
        options.prefix ?? "",
      );
      return Object.fromEntries(chosen.map((tool) => [names.get(tool.name), toolOf(tool, connection, options)]));
    },
    close: () => connection.close(),
  };
}

function choose(tools: readonly ServerTool[], include: readonly string[] | undefined, name: string) {
  if (!include) return tools;
  const missing = include.find((wanted) => !tools.some((tool) => tool.name === wanted));
  if (missing === undefined) return tools.filter((tool) => include.includes(tool.name));
  const there = tools.map((tool) => tool.name);
  const sentence = `The MCP server "${name}" has no tool "${missing}"; it has: ${there.join(", ")}.`;
  throw new BoughError("invalid_argument", sentence, { data: { server: name, tool: missing, tools: there } });
}

function toolOf(tool: ServerTool, connection: McpConnection, options: McpToolsOptions): AnyTool {
  const { annotations: hints, description = tool.title } = tool;
  const { effect = hints?.readOnlyHint ? "read" : "retry", timeoutMs = 60_000 } = options;
  const { permission = hints?.destructiveHint === true && !hints.readOnlyHint } = options;
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
