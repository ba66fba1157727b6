// The live events: shown as they happen, never stored. A delta carries the delta, never the message so far.

import * as v from "valibot";
import { live } from "./define.ts";

const id = v.pipe(v.string(), v.nonEmpty());
const count = v.pipe(v.number(), v.integer(), v.minValue(0));
const ofMessage = { messageId: id };
const ofCall = { messageId: id, callId: id };
const streaming = { channel: "streaming" } as const;
const control = { channel: "control" } as const;

export const liveEvents = [
  live("run-start", v.strictObject({ resumed: v.optional(v.boolean()) }), control),
  live(
    "run-end",
    v.strictObject({
      status: v.picklist(["completed", "interrupted", "failed", "parked"]),
      reason: v.optional(v.string()),
    }),
    control,
  ),
  live("iteration-start", v.strictObject({ iteration: count })),
  live("iteration-end", v.strictObject({ iteration: count, finishReason: v.optional(v.string()) })),
  live("text-start", v.strictObject({ ...ofMessage }), streaming),
  live("text-delta", v.strictObject({ ...ofMessage, text: v.string() }), streaming),
  live("text-end", v.strictObject({ ...ofMessage }), streaming),
  live("reasoning-start", v.strictObject({ ...ofMessage }), streaming),
  live("reasoning-delta", v.strictObject({ ...ofMessage, text: v.string() }), streaming),
  live("reasoning-end", v.strictObject({ ...ofMessage }), streaming),
  live("tool-input-start", v.strictObject({ ...ofCall, toolName: id }), streaming),
  live("tool-input-delta", v.strictObject({ ...ofCall, text: v.string() }), streaming),
  live("tool-input-end", v.strictObject({ ...ofCall }), streaming),
  live("checkpoint-save", v.strictObject({ checkpointId: id, step: v.optional(v.number()) })),
] as const;
