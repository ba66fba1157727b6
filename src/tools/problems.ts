// Every text that a model reads when a tool call fails or is not run.

import type { ToolOutput } from "../events/index.ts";

/** One thing that is wrong with a value, and where in it. */
export interface Issue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** So that a long list does not crowd out the conversation. */
const mostIssues = 20;

export function unknownTool(name: string, names: Iterable<string>): ToolOutput {
  const list = [...names].join(", ");
  return errorText(
    `There is no tool "${name}"; ${list === "" ? "no tools are available" : `available tools: ${list}`}.`,
  );
}

/** The result of a call whose input `tool.parse` refuses. */
export function invalidInput(toolName: string, problem: string): ToolOutput {
  return errorText(`The arguments of "${toolName}" are not valid:\n${problem}`);
}

/** The problems of an input, one per line. */
export function issueList(issues: readonly Issue[]): string {
  const lines = issues.slice(0, mostIssues).map(({ message, path }) => `- ${pathText(path)}${message}`);
  if (issues.length > mostIssues) lines.push(`- and ${issues.length - mostIssues} more`);
  return lines.join("\n");
}

export function denied(reason: string): ToolOutput {
  return { type: "execution-denied", reason };
}

/** The result of a call that no client ran. */
export function noClient(toolName: string, reason: "expired" | "nobody"): ToolOutput {
  const why = reason === "expired" ? "the client did not answer in time" : "no client is connected to run it";
  return errorText(`The tool "${toolName}" was not run: ${why}.`);
}

/** The result of a call past the limit of its message. A denial and no error: the model shall go on, in smaller steps. */
export function tooManyCalls(limit: number): ToolOutput {
  return denied(
    `This call was not run: only the first ${limit} calls of a message are. Call again if you still need it.`,
  );
}

export const failedWithoutWords = "The tool failed.";

export function timedOut(toolName: string, timeoutMs: number): string {
  return `The tool "${toolName}" did not answer within ${timeoutMs} ms.`;
}

export function tooLarge(bytes: number): string {
  return `The result is too large: it exceeds ${bytes} bytes.`;
}

export const tooDeep = "The result is nested too deeply.";

export function resultLost(why: string): ToolOutput {
  return errorText(`The tool ran, but its result can't be used: ${why}`);
}

export function nobodyRuns(toolName: string): ToolOutput {
  return errorText(`The tool "${toolName}" can't be run here.`);
}

export function errorText(value: string): ToolOutput {
  return { type: "error-text", value };
}

function pathText(path: Issue["path"]): string {
  if (!path?.length) return "";
  const keys = path.map((segment) => String(typeof segment === "object" ? segment.key : segment));
  return `${keys.join(".")}: `;
}
