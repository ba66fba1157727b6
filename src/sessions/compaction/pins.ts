// Pins: messages that every compaction keeps word for word. They are branch state, so they fork and revert with the branch:
// under one key, each message id with its position, which no compaction has to look for.

import type { BranchView } from "../../projection/index.ts";
import { stateOf } from "../../projection/view.ts";

/** The key of the branch's state. */
export const pinsKey = "@pins";

/** The pinned messages, each with its position in the ledger. */
export function pinsOf(view: BranchView): Map<string, number> {
  const pins = stateOf(view)[pinsKey];
  return new Map(isRecord(pins) ? Object.entries(pins).filter(isPin) : []);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isPin(entry: [string, unknown]): entry is [string, number] {
  return Number.isInteger(entry[1]);
}
