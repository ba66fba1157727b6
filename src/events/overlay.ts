// How facts carry compactions: a range of positions, what is shown instead, and what is in force after a fact that changes it.

import * as v from "valibot";
import { contentSchema } from "./message.ts";

const id = v.pipe(v.string(), v.nonEmpty());
const position = v.pipe(v.number(), v.integer(), v.minValue(0));

/** Positions are those of the branch's messages, counted from 0; messages of the open turn count on behind the others. */
export const compactedRange = {
  /** Who sees the replacements instead: models only, or people too. */
  retention: v.picklist(["soft", "hard"]),
  /** Replaced are the positions from … to-1. */
  from: position,
  to: position,
  /** The first and the last message of the range: for people, and as a check. */
  first: id,
  last: id,
  /** Positions inside the range that stay verbatim. */
  keep: v.optional(v.array(position)),
  replacements: v.array(
    v.strictObject({ id, role: v.picklist(["system", "user", "assistant"]), content: contentSchema }),
  ),
  /** The open turn, when the range reaches into it. */
  turnId: v.optional(id),
};

const overlaySchema = v.strictObject({ id, seq: position, createdAt: v.number(), ...compactedRange });

/** A compaction as a later fact carries it. */
export type OverlayRecord = v.InferOutput<typeof overlaySchema>;

/** What is in force after the fact, so that no earlier fact is read again. Absent when it is what was in force before. */
export const inForce = {
  /** Compactions: by id those in force before, the others as they were written. */
  overlays: v.optional(v.array(v.union([id, overlaySchema]))),
  /** Outputs of calls that models see as a note. */
  cleared: v.optional(v.array(v.strictObject({ id, seq: position, at: position, callIds: v.array(id) }))),
};
