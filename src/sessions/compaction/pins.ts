// Pins: messages that every compaction keeps verbatim. They are branch state, so they fork and revert with the branch:
// under one key, each message id with its position, which no compaction has to look for. A fork or a revert by message keeps
// the pins of the messages that it keeps, also those that came later, as it keeps compactions.

import type { Json, JsonObject } from "../../base/json.ts";
import { isObject } from "../../base/options.ts";
import type { BranchView } from "../../projection/index.ts";
import { pinsKey } from "../../projection/reserved-state.ts";
import { stateOf } from "../../projection/view.ts";

/** The pinned messages, each with its position in the ledger. */
export function pinsOf(view: BranchView): Map<string, number> {
  return pinsIn(stateOf(view));
}

function pinsIn({ [pinsKey]: pins }: JsonObject): Map<string, number> {
  return new Map(isObject(pins) ? Object.entries(pins).filter(isPin) : []);
}

/** An earlier state with the pins that there are now of the first messages. */
export function withPins(then: JsonObject, now: JsonObject, messages: number): JsonObject {
  if (now[pinsKey] === undefined) return then;
  const pins: Json = Object.fromEntries([...pinsIn(now)].filter(([, position]) => position < messages));
  return { ...then, [pinsKey]: pins };
}

function isPin(entry: [string, unknown]): entry is [string, number] {
  return Number.isInteger(entry[1]);
}
