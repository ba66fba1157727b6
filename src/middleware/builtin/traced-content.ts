// Prompts and answers in the shape of the GenAI conventions: messages of parts, as JSON text.

import type { Json } from "../../base/json.ts";
import type { Part } from "../../events/index.ts";
import type { PromptMessage } from "../../models/index.ts";

export function systemInstructions(prompt: readonly PromptMessage[]): string {
  return JSON.stringify(prompt.filter(({ role }) => role === "system").flatMap(partsOf));
}

export function inputMessages(prompt: readonly PromptMessage[]): string {
  const conversation = prompt.filter(({ role }) => role !== "system");
  return JSON.stringify(conversation.map((message) => ({ role: message.role, parts: partsOf(message) })));
}

export function outputMessage(content: readonly Part[], finishReason: string): string {
  return JSON.stringify([{ role: "assistant", parts: content.map(partOf), finish_reason: finishReason }]);
}

function partsOf({ content }: PromptMessage): Record<string, Json>[] {
  return typeof content === "string" ? [{ type: "text", content }] : content.map(partOf);
}

/** Files are named, not copied: a span is no place for them. */
function partOf(part: Part): Record<string, Json> {
  switch (part.type) {
    case "text":
      return { type: "text", content: part.text as Json };
    case "reasoning":
      return { type: "reasoning", content: (part as { text?: Json }).text ?? "" };
    case "tool-call": {
      const { toolCallId: id, toolName: name, input } = part as Extract<Part, { type: "tool-call"; input: Json }>;
      return { type: "tool_call", id, name, arguments: input };
    }
    case "tool-result": {
      const { toolCallId: id, output } = part as Extract<Part, { type: "tool-result" }>;
      return { type: "tool_call_response", id, response: output as Json };
    }
    default:
      return { type: part.type };
  }
}
