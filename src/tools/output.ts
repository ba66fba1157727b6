// What a model gets to read of a call: made of a result or of an error. Nothing here throws; what can't be passed on
// becomes a result that says so.

import { isPromise } from "../base/abort.ts";
import type { Json } from "../base/json.ts";
import type { ToolOutput } from "../events/index.ts";
import { contentPart } from "./content.ts";
import type { Tool } from "./port.ts";
import { errorText, failedWithoutWords, resultLost, tooDeep, tooLarge } from "./problems.ts";
import { Oversize, outputBytes, readable } from "./readable.ts";

/** Stores the files of a content output: what it returns holds no bytes. */
export type StoreFiles = (output: unknown) => Promise<unknown>;

/** The output of what a tool returned, or of what a client returned in its place; at once, unless the tool takes its time. */
export function outputOf(
  tool: Pick<Tool, "toOutput">,
  result: unknown,
  call: { callId: string; input: unknown },
  storeFiles?: StoreFiles,
): ToolOutput | Promise<ToolOutput> {
  const lost = (error: unknown) => resultLost(messageOf(error));
  const finish = (made: unknown) => {
    if (!storeFiles || Object(made).type !== "content") return fitting(made);
    return storeFiles(made).then(fitting);
  };
  try {
    const made = tool.toOutput(result, call);
    const output = isPromise(made) ? Promise.resolve(made).then(finish) : finish(made);
    return isPromise(output) ? Promise.resolve(output).catch(lost) : output;
  } catch (error) {
    return lost(error);
  }
}

/** The output of a result without `toOutput`: a string becomes text, everything else JSON. */
export function plainOutput(result: unknown): ToolOutput {
  if (typeof result === "string") return { type: "text", value: result };
  // What is not JSON yet is made JSON by `fitting`, in the same walk that makes the copy.
  return { type: "json", value: (result === undefined ? null : result) as Json };
}

/** The output of a tool that threw. */
export function failedOutput(error: unknown): ToolOutput {
  return fitting(errorText(messageOf(error)));
}

/** An output that the log can store; any other value is treated as a plain result. */
export function fitting(output: unknown): ToolOutput {
  try {
    const copy = readable(withContent(output));
    return isOutput(copy) ? copy : plainOutput(copy);
  } catch (error) {
    return errorText(oversizeText(error));
  }
}

/** What a tool shows before it is done. */
export function progressOf(value: unknown): Json {
  try {
    return readable(value);
  } catch (error) {
    return oversizeText(error);
  }
}

/** The words of whatever was thrown. */
export function messageOf(error: unknown): string {
  try {
    if (typeof error === "string" && error !== "") return error;
    const { message, name } = Object(error) as { message?: unknown; name?: unknown };
    if (typeof message === "string" && message !== "") return message;
    if (error instanceof Error) return typeof name === "string" && name !== "" ? name : failedWithoutWords;
    return error === undefined || error === "" ? failedWithoutWords : JSON.stringify(readable(error));
  } catch {
    return failedWithoutWords;
  }
}

function oversizeText(error: unknown): string {
  return error instanceof Oversize && error.limit === "depth" ? tooDeep : tooLarge(outputBytes);
}

/** Files in a content output, in the shape that the log and the providers share; what can't be looked at stays. */
function withContent(output: unknown): unknown {
  try {
    const { type, value } = Object(output) as { type?: unknown; value?: unknown };
    if (type !== "content" || !Array.isArray(value)) return output;
    return { ...(output as object), value: value.map(contentPart) };
  } catch {
    return output;
  }
}

/** A provider that can't read an output refuses every further call of the conversation, so nothing doubtful gets in. */
function isOutput(value: Json): value is Json & ToolOutput {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  switch (value.type) {
    case "text":
    case "error-text":
      return typeof value.value === "string";
    case "json":
    case "error-json":
      return value.value !== undefined;
    case "content":
      return Array.isArray(value.value) && value.value.every(isContentPart);
    case "execution-denied":
      return value.reason === undefined || typeof value.reason === "string";
    default:
      return false;
  }
}

function isContentPart(part: Json): boolean {
  const { type, text } = Object(part) as { type?: unknown; text?: unknown };
  return type === "text" ? typeof text === "string" : typeof type === "string";
}
