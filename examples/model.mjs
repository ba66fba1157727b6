// The model of the examples: a real one if its key is in the environment, otherwise a scripted one.

import { setTimeout as sleep } from "node:timers/promises";
import { scriptedModel } from "bough/scripted";

const { ANTHROPIC_API_KEY, OPENAI_API_KEY } = process.env;
const real = ANTHROPIC_API_KEY ? "anthropic/claude-sonnet-4-5" : OPENAI_API_KEY ? "openai/gpt-5-mini" : undefined;

/** One line of output that tells which model replies, so that a script is not mistaken for a model. */
export const aboutModel = real
  ? `Model: ${real}`
  : "Model: a scripted stand-in (no ANTHROPIC_API_KEY, no OPENAI_API_KEY)";

/** The real model, or a scripted one that streams its replies a few characters at a time. */
export function modelFor(script) {
  return real ?? scriptedModel(script, { chunks: 12, delayMs: 5, sleep });
}
