// Prompts and answers in the shape of the GenAI conventions: messages of parts, as JSON text.

import type { Json } from "../../base/json.ts";
import type { Message, Part, ToolOutput } from "../../events/index.ts";
import type { PromptMessage, ToolSpec } from "../../models/index.ts";

export function systemInstructions(prompt: readonly PromptMessage[]): string {
  return JSON.stringify(prompt.filter(({ role }) => role === "system").flatMap(partsOf));
}

export function inputMessages(prompt: readonly PromptMessage[]): string {
  const conversation = prompt.filter(({ role }) => role !== "system");
  return JSON.stringify(conversation.map((message) => ({ role: message.role, parts: partsOf(message) })));
}

export function outputMessage(content: readonly Part[], finishReason: string): string {
  const reason = finishReasonName(finishReason);
  return JSON.stringify([{ role: "assistant", parts: content.map(partOf), finish_reason: reason }]);
}

/** The conventions' names of reasons that the specification of models names otherwise. */
const reasons: Readonly<Record<string, string>> = { "tool-calls": "tool_call", "content-filter": "content_filter" };

export function finishReasonName(reason: string): string {
  return reasons[reason] ?? reason;
}

/** What a tool said, without the tag that says of what kind it is. */
export function bareOutput(output: ToolOutput): Json {
  if ("value" in output) return output.value as Json;
  return output.type === "execution-denied" ? (output.reason ?? "denied") : (output as unknown as Json);
}

/** The tools of a call, as the conventions define them. */
export function toolDefinitions(tools: readonly ToolSpec[]): string {
  return JSON.stringify(
    (tools as readonly { type: string; name: string; description?: string; inputSchema?: Json }[]).map((tool) => ({
      ...{ type: tool.type, name: tool.name },
      ...(tool.description !== undefined && { description: tool.description }),
      ...(tool.inputSchema !== undefined && { parameters: tool.inputSchema }),
    })),
  );
}

/** What a turn was asked and what it answered, for the span of the turn. */
export function turnMessages(messages: readonly Message[], finishReason: string): { input?: string; output?: string } {
  const asked = messages.slice(
    0,
    Math.max(
      0,
      messages.findIndex(({ role }) => role !== "user"),
    ),
  );
  const input = messages.every(({ role }) => role === "user") ? messages : asked;
  const answer = messages.findLast(({ role }) => role === "assistant");
  const parts =
    typeof answer?.content === "string" ? [{ type: "text", text: answer.content } as Part] : answer?.content;
  return {
    ...(input.length > 0 && { input: inputMessages(input as readonly PromptMessage[]) }),
    ...(parts && { output: outputMessage(parts as readonly Part[], finishReason) }),
  };
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
      return { type: "tool_call_response", id, response: bareOutput(output) };
    }
    default:
      return { type: part.type };
  }
}
