// What models see of outputs that a run cleared.

import { freezeJson } from "../base/json.ts";
import { describeFiles } from "../events/files.ts";
import type { Message, Part, ToolResultPart } from "../events/index.ts";

/** The message with a note in place of each output that was cleared. */
export function clearResults(message: Message, callIds: ReadonlySet<string>): Message {
  if (typeof message.content === "string") return message;
  const content = message.content.map((part) => {
    if (part.type !== "tool-result" || !callIds.has((part as ToolResultPart).toolCallId)) return part;
    const result = part as ToolResultPart;
    return { ...result, output: { type: "text", value: clearedNote(result) } } as Part;
  });
  return freezeJson({ ...message, content } as Message);
}

/** What the model sees in place of an output; files of it stay within its reach. */
function clearedNote(result: ToolResultPart): string {
  const { value } = result.output as { value?: unknown };
  const size = typeof value === "string" ? value.length : JSON.stringify(value ?? null).length;
  const files = describeFiles(result);
  const list = files.length > 0 ? ` Files in it: ${files.join("; ")}.` : "";
  return `[Output of ${result.toolName} cleared: ${size.toLocaleString("en-US")} characters.${list} Call it again if needed.]`;
}
