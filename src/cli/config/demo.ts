// The agent without a configuration: a real model if there is an API key for one, else a script that says that it is one.

import { appendFileSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import * as v from "valibot";
import type { AgentOptions } from "../../agent/index.ts";
import { systemClock } from "../../base/clock.ts";
import { BoughError } from "../../base/errors.ts";
import type { JsonObject } from "../../base/json.ts";
import { textOf } from "../../events/index.ts";
import { toolInput } from "../../middleware/builtin/tool-input.ts";
import { clarification } from "../../middleware/index.ts";
import { type ModelChoice, type PromptMessage, resolveModel } from "../../models/index.ts";
import { type ScriptedReply, scriptedModel } from "../../scripted/index.ts";
import { defineTool } from "../../tools/index.ts";

const realModels = [
  { key: "ANTHROPIC_API_KEY", model: "anthropic/claude-sonnet-4-5" },
  { key: "OPENAI_API_KEY", model: "openai/gpt-5-mini" },
];
const notesFile = "./.bough/notes.md";
const longestWaitSeconds = 60;

export interface DemoAgent {
  readonly options: AgentOptions;
  /** Describes the model, so that a script is not mistaken for one. */
  readonly about: string;
}

export async function demoAgent(): Promise<DemoAgent> {
  const { model, about } = await chooseModel();
  return {
    about,
    options: {
      name: "demo",
      model,
      instructions:
        "You are the demo agent of Bough, a library for durable agent sessions. Answer in a few plain sentences. Use your tools when they fit.",
      tools: { now, wait, write_note: writeNote },
      middleware: [clarification()],
      limits: { onIterations: "ask" },
      compaction: true,
    },
  };
}

async function chooseModel(): Promise<{ model: ModelChoice; about: string }> {
  const found = realModels.find(({ key }) => process.env[key]);
  if (!found) {
    return standIn(`no ${realModels.map(({ key }) => key).join(", no ")}`);
  }
  const { key, model } = found;
  try {
    await resolveModel(model);
    return { model, about: `${model} (${key} is set)` };
  } catch (error) {
    if (!BoughError.is(error, "dependency_missing")) throw error;
    return standIn(`${key} is set, but ${error.data.package} is not installed`);
  }
}

function standIn(why: string): { model: ModelChoice; about: string } {
  const model = scriptedModel(script, { chunks: 40, delayMs: 12, sleep: systemClock.sleep });
  return { model, about: `a scripted demo, not a model (${why})` };
}

const now = defineTool({
  description: "Returns the current date and time.",
  input: toolInput(v.object({}), { type: "object", properties: {} }),
  effect: "read",
  execute: () => new Date().toISOString(),
});

const wait = defineTool({
  description: `Waits for a number of seconds, at most ${longestWaitSeconds}.`,
  input: toolInput(v.object({ seconds: v.pipe(v.number(), v.minValue(0), v.maxValue(longestWaitSeconds)) }), {
    type: "object",
    properties: { seconds: { type: "number", minimum: 0, maximum: longestWaitSeconds } },
    required: ["seconds"],
  }),
  async execute({ seconds }, { signal }) {
    await systemClock.sleep(seconds * 1000, signal);
    return `${seconds} s have passed`;
  },
});

const writeNote = defineTool({
  description: `Adds a line to the file ${notesFile}.`,
  input: toolInput(v.object({ text: v.pipe(v.string(), v.maxLength(1000)) }), {
    type: "object",
    properties: { text: { type: "string", maxLength: 1000 } },
    required: ["text"],
  }),
  permission: true,
  effect: "once",
  execute({ text }) {
    mkdirSync(dirname(notesFile), { recursive: true, mode: 0o700 });
    appendFileSync(notesFile, `- ${text.replace(/\s+/g, " ")}\n`, { mode: 0o600 });
    return `written to ${notesFile}`;
  },
});

const introduction =
  "I am a scripted demo: there is no model behind me, but everything else is real. Try “What time is it?” (I use a tool), “Note: buy milk” (I ask for permission), “Ask me something” (I ask you a question) or “Wait 20 seconds” (kill the process meanwhile and start it again: the turn continues). Set ANTHROPIC_API_KEY or OPENAI_API_KEY to talk to a real model.";

const rules: readonly (readonly [RegExp, (match: RegExpExecArray) => ScriptedReply])[] = [
  [/\bwait\D*(\d+)?/i, ([, seconds]) => call("wait", { seconds: Math.min(Number(seconds ?? 5), longestWaitSeconds) })],
  [/\bnote\b[:,\s]*(?:that\b\s*)?(.*)/is, ([, text]) => call("write_note", { text: text || "an empty note" })],
  [/\b(time|date|clock)\b/i, () => call("now", {})],
  [
    /\bask\b/i,
    () => call("ask_user", { question: "Which tree do you like best?", choices: ["oak", "larch", "birch"] }),
  ],
];

function script(prompt: readonly PromptMessage[]): ScriptedReply {
  const last = prompt.at(-1)!;
  if (last.role === "tool") return aboutResults(last);
  const said = textOf(last);
  for (const [pattern, reply] of rules) {
    const match = pattern.exec(said);
    if (match) return reply(match);
  }
  return introduction;
}

function call(name: string, input: JsonObject): ScriptedReply {
  return { calls: [{ name, input }] };
}

function aboutResults({ content }: PromptMessage): string {
  const results = typeof content === "string" ? [] : content.filter((part) => part.type === "tool-result");
  return results
    .map(({ toolName, output }) => {
      const { type, value, reason } = output as { type: string; value?: unknown; reason?: unknown };
      if (type === "execution-denied") return `I did not do it: ${reason}`;
      if (toolName === "now") return `It is ${value}.`;
      if (toolName === "ask_user") return `${value}: a good choice.`;
      return type.startsWith("error") ? `That failed: ${value}` : `Done: ${value}.`;
    })
    .join(" ");
}
