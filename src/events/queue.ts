// Queued inputs: what was sent to a branch and waits for a turn to take it.

import * as v from "valibot";
import type { JsonObject } from "../base/json.ts";
import { contentSchema, type Message } from "./message.ts";
import type { TurnRequest } from "./request.ts";

/** A message of a queued input. It gets its id when it is taken: the input's id and its number in the input. */
export interface QueuedMessage {
  readonly role: "system" | "user" | "assistant";
  readonly content: Message["content"];
  readonly providerOptions?: JsonObject;
}

/** What sent an input, if it was no person or program: the end of a background task. */
export interface InputSource {
  readonly kind: "task";
  readonly taskId: string;
}

/** An input that waits on a branch. */
export interface QueuedInput {
  readonly id: string;
  readonly queuedAt: number;
  /**
   * `idle`: it begins a turn of its own. `next`: the same, before those that wait. `steer`: it joins the open turn between two
   * model calls, if that goes on long enough.
   */
  readonly when: "idle" | "next" | "steer";
  readonly messages: readonly QueuedMessage[];
  readonly source?: InputSource;
  /** The agent that it is for. */
  readonly agentId?: string;
  /** The person or program that sent it. */
  readonly by?: string;
  readonly metadata?: JsonObject;
  /** How its turn is to run. */
  readonly request?: TurnRequest;
  readonly editedAt?: number;
}

const id = v.pipe(v.string(), v.nonEmpty());

/** When an input is taken. */
export const whenSchema = v.picklist(["idle", "next", "steer"]);

export const queuedMessagesSchema = v.pipe(
  v.array(
    v.strictObject({
      role: v.picklist(["system", "user", "assistant"]),
      content: contentSchema,
      providerOptions: v.optional(v.record(v.string(), v.any())),
    }),
  ),
  v.minLength(1),
) as unknown as v.GenericSchema<readonly QueuedMessage[]>;

export const inputSourceSchema = v.strictObject({ kind: v.literal("task"), taskId: id });
