// Calls and results: how results find their place, and how a call that never got one is answered.

import { callsOf, type Fact, type Message, type ToolOutput, type ToolResultPart } from "../events/index.ts";

/** The id of the message that holds the results of an assistant message's calls. */
export function resultsId(assistantId: string): string {
  return `${assistantId}.tools`;
}

/** The messages with one more result in its place; a call that has a result already keeps the first. */
export function addResult(messages: readonly Message[], fact: Fact<"tool.returned">): readonly Message[] {
  const asked = messages.findLastIndex((each) => callsOf(each).some((call) => call.toolCallId === fact.callId));
  const assistant = messages[asked];
  if (!assistant) return messages;
  const { callId: toolCallId, toolName, output, providerOptions } = fact;
  const result = {
    type: "tool-result",
    toolCallId,
    toolName,
    output: output as ToolOutput,
    ...(providerOptions && { providerOptions }),
  } satisfies ToolResultPart;
  return withResults(messages, asked, [result], fact.at);
}

/** The messages with a "not executed" result for every call that has none. */
export function answerDangling(messages: readonly Message[], why: string, at: number): Message[] {
  let answered = messages;
  for (let i = 0; i < answered.length; i++) {
    const message = answered[i]!;
    const calls = callsOf(message);
    if (calls.length === 0) continue;
    const given = new Set(resultsOf(answered[i + 1], message.id).map((result) => result.toolCallId));
    const missing = calls.filter((call) => !given.has(call.toolCallId));
    if (missing.length === 0) continue;
    const text = `Not executed: the turn was ${why === "committed" ? "closed" : why} before this call had a result.`;
    const results = missing.map(({ toolCallId, toolName }): ToolResultPart => {
      return { type: "tool-result", toolCallId, toolName, output: { type: "error-text", value: text } };
    });
    answered = withResults(answered, i, results, at);
  }
  return answered === messages ? messages.slice() : (answered as Message[]);
}

function withResults(messages: readonly Message[], asked: number, results: ToolResultPart[], at: number): Message[] {
  const assistant = messages[asked]!;
  const existing = messages[asked + 1];
  const earlier = resultsOf(existing, assistant.id);
  const isThere = existing?.id === resultsId(assistant.id);
  const known = new Map(results.map((result) => [result.toolCallId, result]));
  for (const result of earlier) known.set(result.toolCallId, result);
  const message: Message = {
    id: resultsId(assistant.id),
    role: "tool",
    content: callsOf(assistant).flatMap((call) => known.get(call.toolCallId) ?? []),
    createdAt: isThere ? existing.createdAt : at,
    turnId: assistant.turnId,
  };
  return [...messages.slice(0, asked + 1), message, ...messages.slice(asked + (isThere ? 2 : 1))];
}

function resultsOf(message: Message | undefined, assistantId: string): ToolResultPart[] {
  if (message?.id !== resultsId(assistantId) || typeof message.content === "string") return [];
  return message.content.filter((part): part is ToolResultPart => part.type === "tool-result");
}
