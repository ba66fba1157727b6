import type { McpServer } from "@modelcontextprotocol/server";

export function createServer(note: (what: string) => void): McpServer;
