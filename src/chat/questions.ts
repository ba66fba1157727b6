// How a run's questions are shown to the user, and how answers are parsed.

import type { JsonObject } from "../base/json.ts";
import type { Interaction } from "../projection/index.ts";
import { moment, safeText } from "./text.ts";

export type Question = Pick<Interaction, "id" | "kind" | "request"> & { readonly expiresAt?: number | undefined };

/** An answer, or why the line is not one. */
export type Reading = { readonly answer: JsonObject } | { readonly problem: string };

export interface Form {
  /** The question. It is shown in full, since the user approves what was shown. */
  readonly lines: readonly string[];
  readonly prompt: string;
  read(line: string): Reading;
  /** The answer if there is no user. */
  readonly nobody: JsonObject;
}

const forms: Readonly<Record<Question["kind"], (request: JsonObject) => Form>> = {
  permission: permissionForm,
  clarification: clarificationForm,
  continuation: continuationForm,
  "client-tool": clientToolForm,
};

/** How a question is asked. For every kind, a line that is a JSON object is taken as the answer itself. */
export function formOf({ kind, request, expiresAt }: Question): Form {
  const form = forms[kind](request);
  const end = expiresAt === undefined ? [] : [`Answer before ${moment(expiresAt)}.`];
  return { ...form, lines: [...form.lines, ...end], read: (line) => jsonAnswer(line) ?? form.read(line.trim()) };
}

function permissionForm(request: JsonObject): Form {
  const isAgain = request.again === true;
  const name = safeText(String(request.toolName));
  const input = safeText(JSON.stringify(request.input, null, 1).replace(/\n\s*/g, " "));
  const doubt = isAgain ? ["An earlier execution was interrupted; it may have taken effect."] : [];
  return {
    lines: [`${name} ${isAgain ? "would be executed again" : "asks for permission"}: ${input}`, ...doubt],
    prompt: isAgain ? "Execute it again? (y)es, (n)o" : "Allow it? (y)es, (a)lways in this session, (n)o",
    read(line) {
      const [, word = "", reason = ""] = /^(\S*)\s*([\s\S]*)$/.exec(line) ?? [];
      if (/^y(es)?$/i.test(word)) return { answer: { approved: true, choice: "once" } };
      if (/^a(lways)?$/i.test(word) && !isAgain) return { answer: { approved: true, choice: "always" } };
      if (/^no?$/i.test(word)) return { answer: { approved: false, ...(reason && { reason }) } };
      return { problem: `Answer y${isAgain ? "" : ", a"} or n; you can give a reason after n.` };
    },
    nobody: { approved: false, reason: "No user is available to give permission." },
  };
}

function clarificationForm({ question, choices }: JsonObject): Form {
  const list = Array.isArray(choices) ? choices.map(String) : [];
  return {
    lines: [safeText(String(question)), ...list.map((choice, i) => `  ${i + 1}. ${safeText(choice)}`)],
    prompt: list.length > 0 ? "A number, or your own text" : "Your answer",
    read(line) {
      if (line === "") return { problem: "The answer can't be empty." };
      return { answer: { answer: (/^\d{1,3}$/.test(line) && list[Number(line) - 1]) || line } };
    },
    nobody: { answer: "No user is available to answer." },
  };
}

function continuationForm({ limit }: JsonObject): Form {
  return {
    lines: [`The turn has reached its limit of ${limit} model calls.`],
    prompt: "Continue? (y)es, (n)o, or a number of further calls",
    read(line) {
      if (/^y(es)?$/i.test(line)) return { answer: { approved: true } };
      if (/^no?$/i.test(line)) return { answer: { approved: false } };
      if (/^[1-9]\d{0,3}$/.test(line)) return { answer: { approved: true, iterations: Number(line) } };
      return { problem: "Answer y, n or a number." };
    },
    nobody: { approved: false },
  };
}

function clientToolForm({ toolName, input }: JsonObject): Form {
  return {
    lines: [`${safeText(String(toolName))} is a client tool; carry out this call: ${safeText(JSON.stringify(input))}`],
    prompt: "The result",
    read: (line) => (line === "" ? { problem: "The result can't be empty." } : { answer: { output: line } }),
    nobody: { error: "No user is available to carry out the call." },
  };
}

function jsonAnswer(line: string): Reading | undefined {
  if (!line.trimStart().startsWith("{")) return undefined;
  try {
    return { answer: JSON.parse(line) as JsonObject };
  } catch {
    return { problem: "The answer is not valid JSON." };
  }
}
