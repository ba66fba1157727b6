import type { Message } from "../events/index.ts";
import { unclosedWindow } from "./overlay.ts";
import type { BranchView } from "./view.ts";

/**
 * What a model sees: the messages with compactions in force, those of turns not closed yet included. Always legal: every call
 * has exactly one result.
 */
export function transcript(view: BranchView): readonly Message[] {
  const unclosed = unclosedTranscript(view);
  return unclosed.length === 0 ? view.window : [...view.window, ...unclosed];
}

/** The part of closed turns: an array that only grows in place, or is replaced when something is compacted. */
export function closedTranscript(view: BranchView): readonly Message[] {
  return view.window;
}

/** The part of turns not closed yet. */
export function unclosedTranscript(view: BranchView): readonly Message[] {
  return unclosedWindow(view);
}
