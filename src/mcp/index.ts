// MCP servers as tool sources.

import type { Tool as ServerTool } from "@modelcontextprotocol/client";
import { BoughError } from "../base/errors.ts";
import {
  anything,
  checkOptions,
  flag,
  number,
  object,
  oneOf,
  optionKeys,
  optionTable,
  text,
  texts,
} from "../base/options.ts";
import { type AnyTool, defineTool, type PermissionRule, type ToolEffect, type ToolSource } from "../tools/index.ts";
import { type McpAddress, type McpCommand, McpConnection } from "./connection.ts";
import { legalNames } from "./names.ts";
import { type McpResult, mcpOutput } from "./result.ts";

export type { McpAddress, McpCommand } from "./connection.ts";

/** How a server's tools are used. */
export interface McpToolsOptions {
  /** The server's name in errors (default: its command or its host). */
  readonly name?: string;
  /** A prefix for every tool's name (default: none). */
  readonly prefix?: string;
  /** Which tools to use, by the server's names (default: all). */
  readonly include?: readonly string[];
  /**
   * Whether to trust the server's hints about its tools (default false). If true, a tool with `readOnlyHint` needs no permission and
   * has the effect "read". Only for a server that you trust as much as your own code: hints are not verified.
   */
  readonly trustHints?: boolean;
  /** The effect of every tool (default "retry"; with `trustHints`, "read" for read-only tools). */
  readonly effect?: ToolEffect;
  /** Whether every tool needs permission (default true; with `trustHints`, false for read-only tools). */
  readonly permission?: PermissionRule;
  /** The timeout of a call (default 60,000). */
  readonly timeoutMs?: number;
  /** Receives a warning about tools that can't be called and are left out (default: the console). */
  readonly logger?: { warn(...words: unknown[]): void };
}

const commandNames = optionKeys<McpCommand>({ command: true, args: true, env: true, cwd: true });
const addressNames = optionKeys<McpAddress>({ url: true, headers: true });
const optionNames = optionTable<McpToolsOptions>({
  name: text,
  prefix: text,
  include: texts,
  trustHints: flag,
  effect: oneOf("read", "retry", "once"),
  permission: anything,
  timeoutMs: number,
  logger: object,
});

/**
 * The tools of an MCP server. The server is started or connected to when its tools are first needed. Each tool needs permission
 * by default. The list of tools is read once; later changes are not noticed.
 */
export function mcpTools(server: McpCommand | McpAddress, options: McpToolsOptions = {}): ToolSource {
  checkOptions("An MCP server's address", server, "command" in server ? commandNames : addressNames);
  checkOptions("The options of mcpTools", options, optionNames);
  const name = options.name ?? ("command" in server ? server.command : new URL(server.url).host);
  const connection = new McpConnection(server, name);
  const { logger = console } = options;
  let isTold = false;
  const leaveOut = (tools: readonly string[]) => {
    if (isTold || tools.length === 0) return;
    isTold = true;
    logger.warn(
      `These tools of the MCP server "${name}" are left out, because Bough does not support tools that run as tasks: ${tools.join(", ")}.`,
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

/** Whether the tool can only be called as a task, whose result has to be polled. */
function isTaskOnly(tool: ServerTool): boolean {
  const { execution } = tool as { execution?: { taskSupport?: unknown } };
  return execution?.taskSupport === "required";
}

function choose(tools: readonly ServerTool[], include: readonly string[] | undefined, name: string) {
  if (!include) return tools;
  const missing = include.find((wanted) => !tools.some((tool) => tool.name === wanted));
  if (missing === undefined) return tools.filter((tool) => include.includes(tool.name));
  const there = tools.map((tool) => tool.name);
  const sentence = `The MCP server "${name}" has no callable tool "${missing}". Available: ${there.join(", ")}.`;
  throw new BoughError("invalid_argument", sentence, { data: { server: name, tool: missing, tools: there } });
}

function toolOf(tool: ServerTool, connection: McpConnection, options: McpToolsOptions): AnyTool {
  const { annotations: hints, description = tool.title } = tool;
  const isReading = options.trustHints === true && hints?.readOnlyHint === true;
  const { effect = isReading ? "read" : "retry", permission = !isReading, timeoutMs = 60_000 } = options;
  return defineTool({
    ...(description !== undefined && { description }),
    // The server validates its input.
    input: { jsonSchema: tool.inputSchema },
    effect,
    permission,
    timeoutMs,
    execute: (input, { signal, progress }) =>
      connection.call({ name: tool.name, arguments: input, signal, onProgress: progress }),
    toOutput: (result) => mcpOutput(result as McpResult),
  });
}
