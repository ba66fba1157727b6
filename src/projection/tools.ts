// Calls and results: how results find their place, and how a call that never got one is answered.

import { freezeJson } from "../base/json.ts";
import type { Fact, Message, ToolCallPart, ToolOutput, ToolResultPart } from "../events/index.ts";
import { callsOf } from "../events/parts.ts";

/** The id of the message that holds the results of an assistant message's calls. */
export function resultsId(assistantId: string): string {
  return `${assistantId}.tools`;
}

/** Puts one more result in its place; a call that has a result already keeps the first. */
export function addResult(messages: Message[], fact: Fact<"tool.returned">): void {
  const asked = messages.findLastIndex((each) => callsOf(each).some((call) => call.toolCallId === fact.callId));
  if (asked < 0) return;
  const { callId: toolCallId, toolName, output, providerOptions } = fact;
  const result = {
    type: "tool-result",
    toolCallId,
    toolName,
    output: output as ToolOutput,
    ...(providerOptions && { providerOptions }),
  } satisfies ToolResultPart;
  putResults(messages, asked, [result], fact.at);
}

/**
 * The messages with a "not executed" result for every call that has none. The same whatever left the call unanswered and
 * always the same, so that every reader of the log gets the same words.
 */
export function answerDangling(messages: readonly Message[]): Message[] {
  return answerCalls(messages);
}

/** Messages whose calls all have results, with the message that has them: in a long turn, all but the last. */
const complete = new WeakMap<Message, Message>();

function answerCalls(messages: readonly Message[]): Message[] {
  const answered = messages.slice();
  for (let i = 0; i < answered.length; i++) {
    const message = answered[i]!;
    if (message.role !== "assistant" || typeof message.content === "string") continue;
    const next = answered[i + 1];
    if (next && complete.get(message) === next) continue;
    const calls = callsOf(message);
    if (calls.length === 0) continue;
    const given = new Set(resultsOf(next, message.id).map((result) => result.toolCallId));
    const missing = calls.filter((call) => !given.has(call.toolCallId));
    if (missing.length === 0) {
      if (next) complete.set(message, next);
      continue;
    }
    const results = missing.map(({ toolCallId, toolName }): ToolResultPart => {
      return { type: "tool-result", toolCallId, toolName, output: notExecutedOutput };
    });
    putResults(answered, i, results, message.createdAt);
  }
  return answered;
}

/** A call that was under way may have taken effect: a model that believes otherwise would do it again. */
const notExecuted = "Not executed, or not to its end: the turn was closed before this call had a result.";

const notExecutedOutput = Object.freeze({ type: "error-text", value: notExecuted });

/** The messages with only these results in the last batch; the other calls have none. */
export function keepAnswered(messages: readonly Message[], answered: readonly string[]): Message[] {
  const last = messages.at(-1);
  if (last?.role !== "tool" || typeof last.content === "string") return messages.slice();
  const content = last.content.filter(
    (part) => part.type !== "tool-result" || answered.includes(part.toolCallId as string),
  );
  const left = content.length > 0 ? [freezeJson({ ...last, content })] : [];
  return [...messages.slice(0, -1), ...left];
}

/** Puts results behind the message that asked for them, into the message that holds those it has. */
function putResults(messages: Message[], asked: number, results: ToolResultPart[], at: number): void {
  const assistant = messages[asked]!;
  const existing = messages[asked + 1];
  const isThere = existing?.id === resultsId(assistant.id);
  const message: Message = {
    id: resultsId(assistant.id),
    role: "tool",
    content: inOrder(callsOf(assistant), resultsOf(existing, assistant.id), results),
    createdAt: isThere ? existing.createdAt : at,
    turnId: assistant.turnId,
  };
  messages.splice(asked + 1, isThere ? 1 : 0, freezeJson(message));
}

/** Results in the order of their calls: those a batch has, which are in order, and further ones; of two, the one it has. */
function inOrder(
  calls: readonly ToolCallPart[],
  had: readonly ToolResultPart[],
  further: readonly ToolResultPart[],
): ToolResultPart[] {
  // Mostly the next one comes; putting it anywhere costs much more in a batch of thousands.
  if (further.length === 1 && isNext(calls, had, further[0]!)) return [...had, ...further];
  const known = new Map(further.map((result) => [result.toolCallId, result]));
  for (const result of had) known.set(result.toolCallId, result);
  return calls.flatMap((call) => known.get(call.toolCallId) ?? []);
}

/** Whether exactly the calls before this one have results, and no other call has its id. */
function isNext(
  calls: readonly ToolCallPart[],
  had: readonly ToolResultPart[],
  { toolCallId }: ToolResultPart,
): boolean {
  const last = had.at(-1);
  if (last && last.toolCallId !== calls[had.length - 1]?.toolCallId) return false;
  return calls.every((call, i) => (call.toolCallId === toolCallId) === (i === had.length));
}

function resultsOf(message: Message | undefined, assistantId: string): ToolResultPart[] {
  if (message?.id !== resultsId(assistantId) || typeof message.content === "string") return [];
  return message.content.filter((part): part is ToolResultPart => part.type === "tool-result");
}
