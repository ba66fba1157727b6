import { setMaxListeners } from "node:events";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import type { LLMock } from "@copilotkit/aimock";
import type { Message, Part, ToolOutput } from "../../src/events/index.ts";
import {
  type LanguageModel,
  MessageAssembler,
  type ModelPart,
  type ModelRequest,
  streamModel,
  type ToolSpec,
  toPrompt,
} from "../../src/models/index.ts";

// The mock listens once more for each chunk it sends, and Node warns of that.
setMaxListeners(0);

/** The real provider packages, pointed at the mock. */
export function providerModels(mock: LLMock): Record<ProviderName, LanguageModel> {
  const openai = createOpenAI({ baseURL: `${mock.url}/v1`, apiKey: "none" });
  const anthropic = createAnthropic({ baseURL: `${mock.url}/v1`, apiKey: "none" });
  return {
    "openai responses": openai("gpt-5"),
    "openai chat": openai.chat("gpt-4o"),
    "anthropic messages": anthropic("claude-sonnet-4-5"),
  };
}

export const providerNames = ["openai responses", "openai chat", "anthropic messages"] as const;
export type ProviderName = (typeof providerNames)[number];

let messages = 0;
export function message(role: Message["role"], content: string | readonly Part[]): Message {
  messages += 1;
  return { id: `m${messages}`, role, content, createdAt: 0, turnId: "t" };
}

export function toolMessage(callId: string, toolName: string, output: ToolOutput): Message {
  return message("tool", [{ type: "tool-result", toolCallId: callId, toolName, output }]);
}

export const addTool: ToolSpec = {
  type: "function",
  name: "add",
  description: "Adds two numbers.",
  inputSchema: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] },
};

export interface Heard {
  readonly assembler: MessageAssembler;
  readonly parts: readonly ModelPart[];
  /** What the provider package sent, as text. */
  readonly sent: string;
  /** What the call threw. */
  readonly error?: unknown;
}

export interface Asking extends Partial<Omit<ModelRequest, "model" | "prompt">> {
  readonly history?: readonly Message[];
  readonly reasoning?: "turn" | "all";
  readonly signal?: AbortSignal;
  readonly onPart?: (part: ModelPart) => void;
}

/** Asks a model with these messages as the turn, and hears it out. */
export async function ask(model: LanguageModel, turn: readonly Message[], asking: Asking = {}): Promise<Heard> {
  const { history = [], reasoning = "turn", signal = new AbortController().signal, onPart, ...rest } = asking;
  const prompt = toPrompt({ instructions: "Be brief.", history, turn, reasoning });
  const assembler = new MessageAssembler();
  const parts: ModelPart[] = [];
  const bodies: unknown[] = [];
  const watched = recorded(model, bodies);
  try {
    for await (const part of streamModel({ model: watched, prompt, tools: [], settings: {}, ...rest }, { signal })) {
      assembler.add(part);
      parts.push(part);
      onPart?.(part);
    }
    return { assembler, parts, sent: JSON.stringify(bodies) };
  } catch (error) {
    return { assembler, parts, sent: JSON.stringify(bodies), error };
  }
}

/** The mock rewrites bodies into its own shape, so they are looked at on their way out. */
export function recorded(model: LanguageModel, bodies: unknown[]): LanguageModel {
  const { specificationVersion, provider, modelId } = model;
  return {
    specificationVersion,
    provider,
    modelId,
    async doStream(options) {
      const result = (await model.doStream(options)) as { stream: ReadableStream; request?: { body?: unknown } };
      bodies.push(result.request?.body);
      return result;
    },
  };
}
