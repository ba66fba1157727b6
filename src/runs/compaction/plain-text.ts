// A range of messages as plain text, for a model that is asked about them and not with them: no calls that it could answer,
// no media that it may not take, and no output longer than it is worth.

import type { Json } from "../../base/json.ts";
import type { Message, Part, ToolCallPart, ToolOutput, ToolResultPart } from "../../events/index.ts";

/** What is shown of one tool's output. */
const longestOutput = 2_000;

/** Messages as text, one block each; of a text longer than `most` characters the middle is left out. */
export function toPlainText(messages: readonly Message[], most: number): string {
  const blocks = messages.map(blockOf).filter((block) => block !== "");
  return joinWithin(blocks, most);
}

/** The beginning has what was agreed on and any earlier summary, the end what is going on: both stay. */
function joinWithin(blocks: readonly string[], most: number): string {
  const whole = blocks.join("\n\n");
  if (whole.length <= most) return whole;
  const head = takeWithin(blocks, most * 0.3);
  const tail = takeWithin(blocks.slice(head.length).reverse(), most * 0.6).reverse();
  const left = blocks.length - head.length - tail.length;
  return [...head, `[${left} messages are left out here.]`, ...tail].join("\n\n");
}

/** As many blocks as fit, and at least a piece of the first. */
function takeWithin(blocks: readonly string[], most: number): string[] {
  const taken: string[] = [];
  let length = 0;
  for (const block of blocks) {
    if (length + block.length > most) break;
    taken.push(block);
    length += block.length + 2;
  }
  const [first] = blocks;
  return taken.length === 0 && first !== undefined ? [cut(first, Math.floor(most))] : taken;
}

const speakers = { system: "System", user: "User", assistant: "Assistant", tool: "Result" } as const;

function blockOf({ role, content }: Message): string {
  if (typeof content === "string") return content === "" ? "" : `[${speakers[role]}]: ${content}`;
  const lines = content.flatMap((part) => lineOf(part, speakers[role]));
  return lines.join("\n");
}

function lineOf(part: Part, speaker: string): string[] {
  switch (part.type) {
    case "text":
      return part.text === "" ? [] : [`[${speaker}]: ${part.text}`];
    case "tool-call": {
      const { toolName, input } = part as ToolCallPart;
      return [`[Call] ${toolName}(${cut(JSON.stringify(input) ?? "", longestOutput)})`];
    }
    case "tool-result": {
      const { toolName, output } = part as ToolResultPart;
      return [`[Result] ${toolName}: ${cut(outputText(output), longestOutput)}`];
    }
    case "file":
      return [`[${speaker}]: ${fileNote(part)}`];
    // What a model thought is no part of what was said.
    default:
      return [];
  }
}

function outputText(output: ToolOutput): string {
  const { type, value } = output as { type: string; value?: Json };
  const isParts = type === "content" && Array.isArray(value);
  const text = isParts
    ? value.map(itemText).join("\n")
    : typeof value === "string"
      ? value
      : JSON.stringify(value ?? null);
  return type.startsWith("error") ? `error: ${text}` : text;
}

function itemText(item: Json): string {
  const part = Object(item) as { type?: unknown; text?: unknown };
  if (part.type === "text") return String(part.text);
  return fileNote(part);
}

interface FileLike {
  readonly mediaType?: unknown;
  readonly filename?: unknown;
}

/** `[image/png tree.png]`. */
function fileNote(part: object): string {
  const { mediaType, filename } = part as FileLike;
  return `[${[mediaType ?? "file", filename].filter((each) => typeof each === "string").join(" ")}]`;
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most)}… [${text.length - most} more characters]`;
}
