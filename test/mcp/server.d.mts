import type { McpServer } from "@modelcontextprotocol/server";

export function createServer(note: (what: string, why?: string) => void): McpServer;
