// Which model the examples talk to: a real one if there is a key for it in the environment, and otherwise a script.

import { setTimeout as sleep } from "node:timers/promises";
import { scriptedModel } from "bough/scripted";

const { ANTHROPIC_API_KEY, OPENAI_API_KEY } = process.env;
const real = ANTHROPIC_API_KEY ? "anthropic/claude-sonnet-4-5" : OPENAI_API_KEY ? "openai/gpt-5-mini" : undefined;

/** One line for the screen: nobody should take a script for a model. */
export const aboutModel = real
  ? `Model: ${real}`
  : "Model: a scripted stand-in (no ANTHROPIC_API_KEY, no OPENAI_API_KEY)";

/** The real model, or one that says what the script says, a few characters at a time. */
export function modelFor(script) {
  return real ?? scriptedModel(script, { chunks: 12, delayMs: 5, sleep });
}
