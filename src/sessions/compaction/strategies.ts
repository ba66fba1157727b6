// Strategies that need no model, and what a caller may give as one.

import { BoughError } from "../../base/errors.ts";
import { isObject } from "../../base/options.ts";
import type { CompactionStrategy, StrategyInput, StrategyOutput } from "./port.ts";

/** A strategy as a plain function: what to show instead of the range, and which of its messages stay. */
export type CompactionFunction = (range: StrategyInput) => StrategyOutput | Promise<StrategyOutput>;

/**
 * Leaves out everything before the newest turns, without a summary.
 *
 * @example
 * await sessions.compact("user-123", { strategy: keepTurns(20) });
 */
export function keepTurns(turns: number): CompactionStrategy {
  if (!Number.isInteger(turns) || turns < 0) {
    throw new BoughError("invalid_argument", "keepTurns needs an integer ≥ 0.", { data: { turns } });
  }
  return { name: "keepTurns", keepTurns: turns, compact: async () => ({ replacements: [] }) };
}

/** What is used where none is given and no agent has one. */
export const defaultStrategy = keepTurns(10);

export function toStrategy(given: CompactionStrategy | CompactionFunction): CompactionStrategy {
  if (typeof given === "function") {
    return { name: given.name || "function", compact: async (input) => given(input) };
  }
  if (isObject(given) && typeof given.compact === "function" && typeof given.name === "string") return given;
  throw new BoughError("invalid_argument", "strategy must be a strategy, such as keepTurns(20), or a function.");
}

/** Refuses what a strategy may not return. */
export function checkOutput(name: string, output: unknown): StrategyOutput {
  const { replacements, keep } = isObject(output) ? output : ({} as Record<string, unknown>);
  if (!Array.isArray(replacements) || !replacements.every(isReplacement)) {
    throw wrong(name, "replacements: a list of messages with a role (system, user, assistant) and content");
  }
  if (keep !== undefined && !(Array.isArray(keep) && keep.every((id) => typeof id === "string"))) {
    throw wrong(name, "keep: a list of message ids");
  }
  return output as StrategyOutput;
}

function isReplacement(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { role, content, ...rest } = value;
  // What else a message may have is not stored with a compaction, so it would be lost.
  if (Object.keys(rest).some((key) => key !== "id")) return false;
  const isSaid = typeof content === "string" ? content.length > 0 : Array.isArray(content) && content.length > 0;
  return isSaid && (role === "system" || role === "user" || role === "assistant");
}

function wrong(name: string, wanted: string): BoughError {
  return new BoughError("invalid_argument", `The strategy "${name}" must return ${wanted}.`, { data: { name } });
}
