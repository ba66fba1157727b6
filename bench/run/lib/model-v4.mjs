// The model of the systems that speak the AI SDK's LanguageModelV4: Bough, the AI SDK and Mastra. All parts are there at
// once, which is the least that a stream can cost.

import { deltasOf, nextId, tokens, tool } from "./script.mjs";

const usage = {
  inputTokens: { total: tokens.input, noCache: tokens.input, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: tokens.output, text: tokens.output, reasoning: undefined },
};

/** A model that answers in so many deltas; with `callsTool` it asks for the tool before. */
export function modelV4({ deltas = 1, callsTool = false }) {
  const reply = deltasOf(deltas);
  const seen = { messages: 0 };
  const partsFor = (prompt) => {
    seen.messages = prompt.length - (prompt[0]?.role === "system" ? 1 : 0);
    return callsTool && prompt.at(-1).role !== "tool" ? callParts() : textParts(reply);
  };
  const model = {
    specificationVersion: "v4",
    provider: "mock",
    modelId: "mock",
    supportedUrls: {},
    async doStream({ prompt }) {
      return { stream: streamOf(partsFor(prompt)) };
    },
    async doGenerate({ prompt }) {
      return resultOf(partsFor(prompt));
    },
  };
  return { model, seen };
}

function textParts(reply) {
  const id = "text-1";
  return [
    { type: "stream-start", warnings: [] },
    { type: "text-start", id },
    ...reply.map((delta) => ({ type: "text-delta", id, delta })),
    { type: "text-end", id },
    { type: "finish", usage, finishReason: { unified: "stop", raw: "stop" } },
  ];
}

function callParts() {
  const call = { toolCallId: nextId("call"), toolName: tool.name, input: JSON.stringify(tool.input) };
  return [
    { type: "stream-start", warnings: [] },
    { type: "tool-call", ...call },
    { type: "finish", usage, finishReason: { unified: "tool-calls", raw: "tool_calls" } },
  ];
}

function streamOf(parts) {
  return new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
      controller.close();
    },
  });
}

/** The same answer for those that ask for all of it at once. */
function resultOf(parts) {
  const { finishReason } = parts.at(-1);
  const text = parts.map((part) => (part.type === "text-delta" ? part.delta : "")).join("");
  const content = text ? [{ type: "text", text }] : parts.filter((part) => part.type === "tool-call");
  return { content, finishReason, usage, warnings: [] };
}
