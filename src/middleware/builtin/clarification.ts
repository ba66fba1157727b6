// Clarification: the model may ask back.

import * as v from "valibot";
import { defineTool } from "../../tools/index.ts";
import type { Middleware } from "../port.ts";
import { toolInput } from "./tool-input.ts";

const questionSchema = v.object({
  question: v.pipe(v.string(), v.nonEmpty()),
  choices: v.optional(v.array(v.string())),
});

const askUser = defineTool({
  description:
    "Ask the user one question and wait for the answer. Use it when information you need is missing or ambiguous and you can't find it any other way.",
  input: toolInput(questionSchema, {
    type: "object",
    properties: {
      question: { type: "string", description: "The question, understandable without further context." },
      choices: { type: "array", items: { type: "string" }, description: "Answers to choose from, if any." },
    },
    required: ["question"],
    additionalProperties: false,
  }),
  effect: "read",
  execute: ({ question, choices }, context) => context.ask(question, choices ? { choices } : {}),
});

/** Adds the tool `ask_user`: the model asks a person a question and waits for the answer. */
export function clarification(): Middleware {
  return { name: "clarification", tools: { ask_user: askUser } };
}
