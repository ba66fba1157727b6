// Messages are the AI SDK's prompt messages: what is in the log is what a provider gets, with no conversion between.

import * as v from "valibot";
import type { Json, JsonObject } from "../base/json.ts";

/** Text of a message. */
export interface TextPart {
  readonly type: "text";
  readonly text: string;
  readonly providerOptions?: JsonObject;
}

/** A call of a tool by the model. */
export interface ToolCallPart {
  readonly type: "tool-call";
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: Json;
  /** The provider runs this one itself. */
  readonly providerExecuted?: boolean;
  readonly providerOptions?: JsonObject;
}

/** What a tool gave back, in the provider specification's own shape: text, json, error-text, error-json, content … */
export interface ToolOutput {
  readonly type: string;
  readonly [key: string]: Json;
}

/** The result of a tool call. */
export interface ToolResultPart {
  readonly type: "tool-result";
  readonly toolCallId: string;
  readonly toolName: string;
  readonly output: ToolOutput;
  readonly providerOptions?: JsonObject;
}

/** A part Bough only carries: a file, reasoning, or whatever the provider specification adds next. */
export interface OpenPart {
  readonly type: "file" | "reasoning" | "reasoning-file" | "custom" | `${string}:${string}`;
  readonly [key: string]: Json;
}

/** A part of a message. */
export type Part = TextPart | ToolCallPart | ToolResultPart | OpenPart;
/** Who a message is from. */
export type Role = "system" | "user" | "assistant" | "tool";

/** A message of a branch. */
export interface Message {
  /** Unique, never used again for a second attempt, the same on every branch that sees the message. */
  readonly id: string;
  readonly role: Role;
  readonly content: string | readonly Part[];
  readonly createdAt: number;
  readonly turnId: string;
  /** The turn was cut off while this message was being written. */
  readonly partial?: true;
  readonly providerOptions?: JsonObject;
  /** How it came into the turn, if it was not the input that began it: by steering, or as the end of a background task. */
  readonly source?: "steer" | "task";
  /** The queued input that it is of. */
  readonly inputId?: string;
}

/** A message on its way in; a text stands for one text part. */
export interface NewMessage {
  readonly role: Role;
  readonly content: string | readonly Part[];
  /** Its id; new by default. Never used twice. */
  readonly id?: string;
  readonly partial?: true;
  readonly providerOptions?: JsonObject;
}

const options = { providerOptions: v.optional(v.record(v.string(), v.any())) };

const textPartSchema = v.strictObject({ type: v.literal("text"), text: v.string(), ...options });
const callPartSchema = v.strictObject({
  type: v.literal("tool-call"),
  toolCallId: v.pipe(v.string(), v.nonEmpty()),
  toolName: v.pipe(v.string(), v.nonEmpty()),
  input: v.any(),
  providerExecuted: v.optional(v.boolean()),
  ...options,
});
const openPartSchema = v.looseObject({ type: v.pipe(v.string(), v.nonEmpty()) });

/** Lazy instead of a variant, which tries one schema after the other: this is hot in every append. */
const partSchema = v.lazy((part): v.GenericSchema => {
  const type = (part as { type?: unknown } | null)?.type;
  if (type === "text") return textPartSchema;
  return type === "tool-call" ? callPartSchema : openPartSchema;
});

const textSchema = v.string();
const partsSchema = v.array(partSchema);
/** Lazy instead of a union, so that a refusal names the part that is wrong. */
export const contentSchema = v.lazy((content) =>
  typeof content === "string" ? textSchema : partsSchema,
) as unknown as v.GenericSchema<Message["content"]>;
export const outputSchema = v.looseObject({
  type: v.pipe(v.string(), v.nonEmpty()),
}) as unknown as v.GenericSchema<ToolOutput>;
