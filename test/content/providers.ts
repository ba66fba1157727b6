// The real provider packages, pointed at a mock, with what they put on the wire.

import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import type { LLMock } from "@copilotkit/aimock";
import type { LanguageModel } from "../../src/index.ts";

export const wireNames = ["openai responses", "openai chat", "anthropic", "google"] as const;
export type WireName = (typeof wireNames)[number];

/** The models, each with the bodies of its requests. */
export function wireModels(mock: LLMock, sent: unknown[]): Record<WireName, LanguageModel> {
  const watched: typeof fetch = async (url, init) => {
    sent.push(JSON.parse(String(init?.body)));
    return fetch(url, init);
  };
  const options = { baseURL: `${mock.url}/v1`, apiKey: "none", fetch: watched };
  const openai = createOpenAI(options);
  const anthropic = createAnthropic(options);
  const google = createGoogleGenerativeAI({ ...options, baseURL: `${mock.url}/v1beta` });
  return {
    "openai responses": openai("gpt-5"),
    "openai chat": openai.chat("gpt-4o"),
    anthropic: anthropic("claude-sonnet-4-5"),
    google: google("gemini-2.5-flash"),
  };
}
