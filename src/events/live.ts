// The live events: shown as they happen, never stored. A delta carries the delta, never the message so far.

import * as v from "valibot";
import { live } from "./define.ts";

const id = v.pipe(v.string(), v.nonEmpty());
const count = v.pipe(v.number(), v.integer(), v.minValue(0));
const ofMessage = { messageId: id };
const ofCall = { messageId: id, callId: id };
const failure = v.strictObject({
  message: v.string(),
  code: v.optional(v.string()),
  name: v.optional(v.string()),
  /** The HTTP status that a provider refused with. */
  status: v.optional(v.number()),
});
const again = { attempt: count, attempts: count, delayMs: v.number(), error: failure };
const streaming = { channel: "streaming" } as const;
const control = { channel: "control" } as const;

/** The definitions of all live events. */
export const liveEvents = [
  live("run-start", v.strictObject({ resumed: v.optional(v.boolean()) }), control),
  live(
    "run-end",
    v.strictObject({
      status: v.picklist(["completed", "interrupted", "failed", "parked"]),
      reason: v.optional(v.string()),
      error: v.optional(failure),
    }),
    control,
  ),
  live("iteration-start", v.strictObject({ iteration: count })),
  live("iteration-end", v.strictObject({ iteration: count, finishReason: v.optional(v.string()) })),
  /** The call failed and is made again; what was shown of the message is void, the next attempt is a new message. */
  live("model-retry", v.strictObject({ ...ofMessage, ...again }), control),
  live("text-start", v.strictObject({ ...ofMessage }), streaming),
  live("text-delta", v.strictObject({ ...ofMessage, text: v.string() }), streaming),
  live("text-end", v.strictObject({ ...ofMessage }), streaming),
  live("reasoning-start", v.strictObject({ ...ofMessage }), streaming),
  live("reasoning-delta", v.strictObject({ ...ofMessage, text: v.string() }), streaming),
  live("reasoning-end", v.strictObject({ ...ofMessage }), streaming),
  live("tool-input-start", v.strictObject({ ...ofCall, toolName: id }), streaming),
  live("tool-input-delta", v.strictObject({ ...ofCall, text: v.string() }), streaming),
  live("tool-input-end", v.strictObject({ ...ofCall }), streaming),
  /** The output that was asked for, as far as it is written; not checked yet. Each stands in place of the one before. */
  live("output-partial", v.strictObject({ ...ofMessage, output: v.any() }), streaming),
  /** A tool begins to run; its result is the fact `tool.returned`. */
  live("tool-start", v.strictObject({ ...ofCall, toolName: id, input: v.unknown() })),
  /** What a tool shows before it is done. */
  live("tool-progress", v.strictObject({ callId: id, toolName: id, output: v.any() })),
  live("tool-retry", v.strictObject({ callId: id, toolName: id, ...again })),
  /** A step of a workflow begins to run; its result is the fact `step.returned`. */
  live("step-start", v.strictObject({ key: id, attempt: count })),
  live("step-retry", v.strictObject({ key: id, ...again })),
  /** Recorded steps that the code of a workflow did not ask for, or asked for with another input. */
  live("flow-diverge", v.strictObject({ keys: v.array(id), changed: v.optional(v.array(id)) })),
  /** Something went wrong that the run goes on from, or says how it ends. */
  live("error-report", v.strictObject({ source: v.picklist(["model", "tool", "middleware", "run"]), error: failure })),
  /** A file could not be sent to the model, or not be made; a note stands in its place and the run goes on. */
  live("content-fail", v.strictObject({ contentId: v.optional(id), error: failure })),
  /** More of what is heard in an audio file of the input, while it is transcribed. */
  live("transcript-delta", v.strictObject({ contentId: id, text: v.string() }), streaming),
  /** What is heard so far; each stands in place of the one before. */
  live("transcript-partial", v.strictObject({ contentId: id, text: v.string() }), streaming),
  /** A limit stops the turn or asks whether to go on. */
  live("limit-reach", v.strictObject({ limit: id, value: v.optional(v.number()) }), control),
  /** The run begins to shorten what its model sees; `tokens` is the size of the prompt. */
  live("compaction-start", v.strictObject({ reason: id, tokens: count })),
  /** It is shorter: the fact that says so is in the log. */
  live(
    "compaction-end",
    v.strictObject({
      reason: id,
      compactionId: id,
      before: count,
      after: count,
      ms: v.number(),
      cachedInputTokens: v.optional(count),
    }),
  ),
  /** It could not be made shorter, and the run goes on as it is. */
  live("compaction-skip", v.strictObject({ reason: id, why: v.string() })),
  /** Stored middleware state is of another version than the declared one, or is not declared. */
  live(
    "state-migrate",
    v.strictObject({
      scope: v.picklist(["branch", "session"]),
      key: id,
      change: v.picklist(["added", "removed", "migrated", "reset", "newer"]),
      from: v.optional(v.number()),
      to: v.optional(v.number()),
    }),
  ),
  /** An edge of a graph is taken, in a round of the node that it comes from; `condition` says in words why. */
  live("edge-take", v.strictObject({ from: id, to: id, round: count, condition: v.optional(v.string()) })),
  /** The first node of a layer of a graph begins to work; `layer` counts from 0. */
  live("layer-start", v.strictObject({ layer: count })),
  /** No node of the layer waits or works. */
  live("layer-end", v.strictObject({ layer: count })),
  /** Whatever a tool or a middleware wants to show. */
  live("custom-emit", v.strictObject({ name: id, data: v.any() })),
  /** A slow reader missed live events. */
  live("events-drop", v.strictObject({ count }), control),
  live("checkpoint-clear", v.strictObject({ count })),
  live("checkpoint-save", v.strictObject({ checkpointId: id, step: v.optional(v.number()) })),
] as const;
