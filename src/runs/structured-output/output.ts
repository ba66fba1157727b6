// Structured output: the answer is an object that fits a schema, or the turn fails and says why.

import { BoughError } from "../../base/errors.ts";
import type { Json, JsonObject } from "../../base/json.ts";
import { callsOf, type Message, type NewMessage, type ToolCallPart, type ToolOutput } from "../../events/index.ts";
import { problems } from "../../tools/index.ts";
import type { OutputForm, OutputPlan, ReadOutput } from "./plan.ts";

/** The object in a model's text, fences and words around it left out. */
export async function readOutput(form: Pick<OutputForm, "parse">, text: string): Promise<ReadOutput> {
  let refused: { readonly problem: string } | undefined;
  for (const found of objectsIn(text)) {
    const read = await form.parse(found);
    if ("value" in read) return read;
    refused ??= read;
  }
  return refused ?? { problem: "It is not a JSON object." };
}

/** The objects a text may mean: the whole of it, what is fenced, and from each brace to the last one. */
function* objectsIn(text: string): Generator<JsonObject> {
  const whole = parseObject(text);
  if (whole) return yield whole;
  for (const [, fenced] of text.matchAll(/```[^\n`]*\n([\s\S]*?)```/g)) {
    const found = parseObject(fenced!);
    if (found) yield found;
  }
  const end = text.lastIndexOf("}") + 1;
  for (let start = text.indexOf("{"); start >= 0 && start < end; start = text.indexOf("{", start + 1)) {
    const found = parseObject(text.slice(start, end));
    if (found) return yield found;
  }
}

function parseObject(text: string): JsonObject | undefined {
  try {
    const value = JSON.parse(text) as Json;
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** What the model reads of a call that gave the output; nothing of it runs. */
const taken: ToolOutput = { type: "text", value: "Answer accepted." };

/** The form that a call's arguments have to have, if it is one that gives the output. */
export function formOfCall(plan: OutputPlan | undefined, { toolName }: ToolCallPart): OutputForm | undefined {
  return plan?.mode === "tool" ? plan.forms.get(toolName) : undefined;
}

/** The result of a call that gives the output. */
export async function takeOutput(form: OutputForm, { toolName, input }: ToolCallPart): Promise<ToolOutput> {
  const read = await form.parse(input);
  return "value" in read ? taken : problems.invalidInput(toolName, read.problem);
}

/** The output in a reply's calls, which all have their results; nothing when none of them is meant to give it. */
export async function outputOfCalls(
  plan: OutputPlan,
  message: Message,
  results: Message | undefined,
): Promise<ReadOutput | undefined> {
  let refused: ReadOutput | undefined;
  for (const call of callsOf(message)) {
    const form = formOfCall(plan, call);
    if (!form) continue;
    const read = await form.parse(call.input);
    // A hook may have let none of the calls through.
    if ("value" in read && resultValue(results, call) === taken.value) return read;
    if ("problem" in read) refused ??= read;
  }
  return refused;
}

function resultValue(results: Message | undefined, { toolCallId }: ToolCallPart): unknown {
  if (results?.role !== "tool" || typeof results.content === "string") return undefined;
  const part = results.content.find((each) => "toolCallId" in each && each.toolCallId === toolCallId);
  return part?.type === "tool-result" ? part.output.value : undefined;
}

/** Whether the model was already asked to correct its answer. */
export function wasRefused(plan: OutputPlan, earlier: readonly Message[]): boolean {
  const isMiss = (message: Message, i: number) =>
    callsOf(message).some((call) => formOfCall(plan, call) && resultValue(earlier[i + 1], call) !== taken.value);
  return earlier.some((message, i) => isRepair(message) || isMiss(message, i));
}

const mark = { bough: { repair: true } };

/** Asks the model to correct its answer; marked, so that a resumed turn knows that it was asked. */
export function repairMessage(plan: OutputPlan, problem: string): NewMessage {
  const text =
    plan.mode === "native"
      ? `Your answer does not match the required schema: ${problem} Answer again with the JSON object only.`
      : `Your answer can't be used: ${problem} Call that tool with the answer.`;
  return { role: "user", content: [{ type: "text", text }], providerOptions: mark };
}

/** The problem of an answer that was not given with the tool. */
export function notCalled(forms: ReadonlyMap<string, OutputForm>): string {
  return `It must be given with the tool ${[...forms.keys()].join(" or ")}.`;
}

function isRepair({ providerOptions }: Pick<Message, "providerOptions">): boolean {
  return (providerOptions?.bough as JsonObject | undefined)?.repair === true;
}

export function outputInvalid(problem: string): BoughError {
  return new BoughError("output_invalid", `The model's answer does not match the schema: ${problem}`, {
    data: { problem },
  });
}

export function outputMissing(reason: string): BoughError {
  return new BoughError("output_invalid", `The turn stopped before the model returned its output: ${reason}.`, {
    data: { reason },
  });
}
