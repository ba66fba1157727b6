// Reminders: the changing part of a prompt, at its end. Everything before it stays a prefix of the next prompt.

import type { LanguageModel, ModelRequest, PromptMessage } from "./port.ts";

/** The message that a request's reminders are sent in; undefined when there are none. */
export function reminderMessage({ reminders = [] }: Pick<ModelRequest, "reminders">): PromptMessage | undefined {
  if (reminders.length === 0) return undefined;
  return { role: "user", content: reminders.map((text) => ({ type: "text", text })) };
}

/** The prompt with the reminders in it, as the model takes them. */
export function withReminders(
  prompt: readonly PromptMessage[],
  { model, reminders = [] }: Pick<ModelRequest, "model" | "reminders">,
): readonly PromptMessage[] {
  const message = reminderMessage({ reminders });
  if (!message) return prompt;
  if (prompt.at(-1)?.role === "tool" && refusesUserAfterTool(model)) return withInstruction(prompt, reminders);
  return [...prompt, message];
}

const mistral = /mistral|magistral|ministral|devstral|codestral|pixtral/i;

/** Mistral's models answer "Unexpected role 'user' after role 'tool'" on every provider. */
function refusesUserAfterTool({ provider, modelId }: Pick<LanguageModel, "provider" | "modelId">): boolean {
  return mistral.test(provider) || mistral.test(modelId);
}

/** Providers want one system message at most, so an existing one grows. */
function withInstruction(prompt: readonly PromptMessage[], reminders: readonly string[]): readonly PromptMessage[] {
  const [first, ...conversation] = prompt;
  const text = reminders.join("\n\n");
  if (first?.role !== "system") return [{ role: "system", content: text }, ...prompt];
  return [{ ...first, content: `${first.content}\n\n${text}` }, ...conversation];
}
