// Questions of a run, as a person is asked them and as an answer is read.

import type { JsonObject } from "../../base/json.ts";
import type { Interaction } from "../../projection/index.ts";
import { moment } from "../terminal.ts";
import { safeText } from "./text.ts";

export type Question = Pick<Interaction, "id" | "kind" | "request"> & { readonly expiresAt?: number | undefined };

/** An answer, or what is wrong with the line. */
export type Reading = { readonly answer: JsonObject } | { readonly problem: string };

export interface Form {
  /** What is asked; all of it is shown, since an answer holds for what was shown. */
  readonly lines: readonly string[];
  readonly prompt: string;
  read(line: string): Reading;
  /** The answer when nobody is there. */
  readonly nobody: JsonObject;
}

const forms: Readonly<Record<Question["kind"], (request: JsonObject) => Form>> = {
  permission: permissionForm,
  clarification: clarificationForm,
  continuation: continuationForm,
  "client-tool": clientToolForm,
};

/** How a question is asked. A line that is a JSON object is an answer as it is, whatever the kind. */
export function formOf({ kind, request, expiresAt }: Question): Form {
  const form = forms[kind](request);
  const end = expiresAt === undefined ? [] : [`It can be answered until ${moment(expiresAt)}.`];
  return { ...form, lines: [...form.lines, ...end], read: (line) => jsonAnswer(line) ?? form.read(line.trim()) };
}

function permissionForm(request: JsonObject): Form {
  const isAgain = request.again === true;
  const name = safeText(String(request.toolName));
  const input = safeText(JSON.stringify(request.input, null, 1).replace(/\n\s*/g, " "));
  const doubt = isAgain ? ["It was cut off before and may have taken effect; nobody knows."] : [];
  return {
    lines: [`${name} ${isAgain ? "would run again" : "asks for permission"}: ${input}`, ...doubt],
    prompt: isAgain ? "Run it again? (y)es, (n)o" : "Allow it? (y)es, (a)lways in this session, (n)o",
    read(line) {
      const [, word = "", reason = ""] = /^(\S*)\s*([\s\S]*)$/.exec(line) ?? [];
      if (/^y(es)?$/i.test(word)) return { answer: { approved: true, choice: "once" } };
      if (/^a(lways)?$/i.test(word) && !isAgain) return { answer: { approved: true, choice: "always" } };
      if (/^no?$/i.test(word)) return { answer: { approved: false, ...(reason && { reason }) } };
      return { problem: `Say y${isAgain ? "" : ", a"} or n; a reason may follow the n.` };
    },
    nobody: { approved: false, reason: "Nobody is there to give permission." },
  };
}

function clarificationForm({ question, choices }: JsonObject): Form {
  const list = Array.isArray(choices) ? choices.map(String) : [];
  return {
    lines: [safeText(String(question)), ...list.map((choice, i) => `  ${i + 1}. ${safeText(choice)}`)],
    prompt: list.length > 0 ? "A number, or your own words" : "Your answer",
    read(line) {
      if (line === "") return { problem: "Say something." };
      return { answer: { answer: (/^\d{1,3}$/.test(line) && list[Number(line) - 1]) || line } };
    },
    nobody: { answer: "Nobody is there to answer." },
  };
}

function continuationForm({ limit }: JsonObject): Form {
  return {
    lines: [`The turn has made ${limit} model calls, which is its limit.`],
    prompt: "Go on? (y)es, (n)o, or how many more calls",
    read(line) {
      if (/^y(es)?$/i.test(line)) return { answer: { approved: true } };
      if (/^no?$/i.test(line)) return { answer: { approved: false } };
      if (/^[1-9]\d{0,3}$/.test(line)) return { answer: { approved: true, iterations: Number(line) } };
      return { problem: "Say y, n or a number." };
    },
    nobody: { approved: false },
  };
}

function clientToolForm({ toolName, input }: JsonObject): Form {
  return {
    lines: [`${safeText(String(toolName))} is for you to carry out: ${safeText(JSON.stringify(input))}`],
    prompt: "What came of it",
    read: (line) => (line === "" ? { problem: "Say what came of it." } : { answer: { output: line } }),
    nobody: { error: "Nobody is there to carry it out." },
  };
}

function jsonAnswer(line: string): Reading | undefined {
  if (!line.trimStart().startsWith("{")) return undefined;
  try {
    return { answer: JSON.parse(line) as JsonObject };
  } catch {
    return { problem: "That is no JSON." };
  }
}
