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
    "Ask the user one question and wait for the answer. Use it when something you need is missing or ambiguous and can't be found out otherwise.",
  input: toolInput(questionSchema, {
    type: "object",
    properties: {
      question: { type: "string", description: "The question, complete in itself." },
      choices: { type: "array", items: { type: "string" }, description: "Answers to choose from, if there are any." },
    },
    required: ["question"],
    additionalProperties: false,
  }),
  effect: "read",
  execute: ({ question, choices }, context) => context.ask(question, choices ? { choices } : {}),
});

/** Brings the tool `ask_user`, with which the model asks a person and waits for the answer. */
export function clarification(): Middleware {
  return { name: "clarification", tools: { ask_user: askUser } };
}
