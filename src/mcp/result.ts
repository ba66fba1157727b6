// Converts a server's result into a tool output.

import type { Json } from "../base/json.ts";
import type { ToolOutput } from "../events/index.ts";

/** One block of a result, with the fields that are read here. */
interface Block {
  readonly type: string;
  readonly text?: string;
  readonly data?: string;
  readonly mimeType?: string;
  readonly uri?: string;
  readonly name?: string;
  readonly resource?: {
    readonly uri: string;
    readonly mimeType?: string;
    readonly text?: string;
    readonly blob?: string;
  };
}

export interface McpResult {
  readonly content?: readonly Block[];
  readonly structuredContent?: Json;
  readonly isError?: boolean;
}

type Part = { type: "text"; text: string } | { type: "file"; mediaType: string; data: { type: "data"; data: string } };

/** Structured content becomes JSON, text becomes text, results with files become content, failures become errors. */
export function mcpOutput({ content = [], structuredContent, isError = false }: McpResult): ToolOutput {
  const parts = content.map(partOf);
  const isText = parts.every((part) => part.type === "text");
  if (structuredContent !== undefined && (isText || isError)) {
    return { type: isError ? "error-json" : "json", value: structuredContent };
  }
  // An error output can't hold files.
  if (isText || isError) return { type: isError ? "error-text" : "text", value: textOf(parts) };
  return { type: "content", value: parts };
}

function partOf(block: Block): Part {
  const { type, text, data, mimeType, resource } = block;
  if (type === "text") return { type: "text", text: text ?? "" };
  if (data !== undefined) return filePart(data, mimeType);
  if (resource?.blob !== undefined) return filePart(resource.blob, resource.mimeType);
  if (resource) return { type: "text", text: resource.text ?? resource.uri };
  if (type === "resource_link") return { type: "text", text: `${block.name}: ${block.uri}` };
  return { type: "text", text: JSON.stringify(block) };
}

function filePart(data: string, mediaType = "application/octet-stream"): Part {
  return { type: "file", mediaType, data: { type: "data", data } };
}

function textOf(parts: readonly Part[]): string {
  return parts.map((part) => (part.type === "text" ? part.text : `[${part.mediaType}]`)).join("\n");
}
