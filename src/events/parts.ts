// What is read out of messages. Apart from the schemas, so that a browser that only reads has no need of them.

import type { Message, ToolCallPart } from "./message.ts";

/** The tool calls of an assistant message that wait for a result from us (the provider runs its own). */
export function callsOf(message: Pick<Message, "role" | "content">): ToolCallPart[] {
  if (message.role !== "assistant" || typeof message.content === "string") return [];
  return message.content.filter((part): part is ToolCallPart => part.type === "tool-call" && !part.providerExecuted);
}

/** The text of a message, its other parts left out. */
export function textOf(message: Pick<Message, "content">): string {
  if (typeof message.content === "string") return message.content;
  return message.content.map((part) => (part.type === "text" ? part.text : "")).join("");
}
