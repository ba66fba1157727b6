import { describe, expect, test } from "vitest";
import { addReminder, ownRequest, requestToSend } from "./own-request.ts";
import type { LanguageModel, ModelRequest, PromptMessage } from "./port.ts";
import { withReminders } from "./reminders.ts";

const modelOf = (provider: string, modelId = "m") => ({ provider, modelId }) as LanguageModel;
const text = (role: "user" | "assistant", said: string): PromptMessage => ({
  role,
  content: [{ type: "text", text: said }],
});
const result: PromptMessage = {
  role: "tool",
  content: [{ type: "tool-result", toolCallId: "c", toolName: "t", output: { type: "text", value: "ok" } }],
};
const system: PromptMessage = { role: "system", content: "Be kind." };
const reminders = ["The plan.", "The time."];
const reminder = {
  role: "user",
  content: [
    { type: "text", text: "The plan." },
    { type: "text", text: "The time." },
  ],
};

describe("reminders", () => {
  test("are a last user message; without any the prompt is the same one", () => {
    const prompt = [system, text("user", "Go"), text("assistant", "Going"), result];
    const sent = withReminders(prompt, { model: modelOf("anthropic.messages"), reminders });
    expect(sent).toEqual([...prompt, reminder]);
    expect(sent.slice(0, 4).every((message, i) => message === prompt[i])).toBe(true);
    expect(withReminders(prompt, { model: modelOf("any") })).toBe(prompt);
    expect(withReminders(prompt, { model: modelOf("any"), reminders: [] })).toBe(prompt);
  });

  test.each([
    ["mistral.chat", "mistral-large-latest"],
    ["nim.chat", "mistralai/devstral-small-2"],
  ])("of %s %s go into the instructions after a tool's result, and only there", (provider, modelId) => {
    const model = modelOf(provider, modelId);
    const called = [system, text("user", "Go"), result];
    expect(withReminders(called, { model, reminders })).toEqual([
      { role: "system", content: "Be kind.\n\nThe plan.\n\nThe time." },
      ...called.slice(1),
    ]);
    expect(withReminders([result], { model, reminders })[0]).toEqual({
      role: "system",
      content: "The plan.\n\nThe time.",
    });
    expect(withReminders([system, text("user", "Go")], { model, reminders }).at(-1)).toEqual(reminder);
  });

  test("are added to a copy of a shared request, and in place to one that hooks may change, whose prompt is not copied", () => {
    const shared: ModelRequest = { model: modelOf("any"), prompt: [system], tools: [], settings: {} };
    expect(addReminder(shared, "A")).toEqual({ ...shared, reminders: ["A"] });
    expect(shared.reminders).toBeUndefined();
    const own = ownRequest(shared);
    expect(addReminder(addReminder(own, "A"), "B")).toBe(own);
    expect(requestToSend(own)).toEqual({ ...shared, reminders: ["A", "B"] });
    expect(requestToSend(own).prompt).toBe(shared.prompt);
  });
});
