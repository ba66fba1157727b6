// The events of an agent whose tools the compiler knows: names are those of the tools, inputs and results are theirs.

import type { Json } from "../base/json.ts";
import type { BoughEvent } from "../events/index.ts";
import type { RawInputOf, ToolDefinition, ToolSet } from "../tools/index.ts";

type EventNamed<Type extends string> = Extract<BoughEvent, { readonly type: Type }>;
type ToolEventType = "tool-start" | "tool.returned";

/** The arguments of a tool as the model sends them. */
type Arguments<Tool> =
  Tool extends ToolDefinition<infer Input, infer _Returned, infer _Context>
    ? RawInputOf<Input>
    : // biome-ignore lint/suspicious/noExplicitAny: an AI SDK tool has a context of its own
      Tool extends { readonly execute?: ((input: infer Input, context: any) => unknown) | undefined }
      ? Input
      : unknown;

/** What a tool ends with: what it returns, or the last value of those it yields. */
type Ending<Returned> =
  Awaited<Returned> extends AsyncIterable<infer Yielded> ? Exclude<Yielded, void> : Awaited<Returned>;

// biome-ignore lint/suspicious/noExplicitAny: tools of every input type
type Returned<Tool> = Tool extends { readonly execute?: ((...args: any[]) => infer Result) | undefined }
  ? Ending<Result>
  : unknown;

/** A result as the model reads it: text as text, everything else as JSON, or why there is none. */
type OutputOfTool<Tool> =
  | ([Returned<Tool>] extends [string]
      ? { readonly type: "text"; readonly value: string }
      : { readonly type: "json"; readonly value: Returned<Tool> })
  | { readonly type: "error-text"; readonly value: string }
  | { readonly type: "error-json"; readonly value: Json }
  | { readonly type: "execution-denied"; readonly reason?: string };

type ToolEvents<Tools extends ToolSet> = {
  [Name in keyof Tools & string]:
    | (EventNamed<"tool-start"> & { readonly toolName: Name; readonly input: Arguments<Tools[Name]> })
    | (EventNamed<"tool.returned"> & { readonly toolName: Name; readonly output: OutputOfTool<Tools[Name]> });
}[keyof Tools & string];

/**
 * Every event of an agent with these tools. In `tool-start` and `tool.returned`, `toolName` narrows the input and the output.
 * Results of tools with their own `toOutput`, and tools of middleware and sources, are not typed.
 */
export type AgentEvent<Tools extends ToolSet = ToolSet> = string extends keyof Tools
  ? BoughEvent
  : Exclude<BoughEvent, { readonly type: ToolEventType }> | ToolEvents<Tools>;

/** The events of one type, or all of them for `"*"`. */
export type EventOf<Type extends string, Event = BoughEvent> = Type extends "*"
  ? Event
  : Extract<Event, { readonly type: Type }>;

/** The types of events. */
export type TypeOf<Event> = Event extends { readonly type: infer Type extends string } ? Type : never;

/** The events of a branch, on which agents with other tools may work, too: the program's own, and Bough's without typed tools. */
export type HandleEvent<Event> = BoughEvent | Exclude<Event, BoughEvent>;
