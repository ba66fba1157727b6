// What an answer to an interaction says, by its kind. One definition each: for the door (strict: an unknown key is a
// mistake, and an answer counts once) and for code that reads answers from a log (what an older version let through stays
// readable).

import * as v from "valibot";

const outputSchema = v.union([
  v.string(),
  v.strictObject({ type: v.picklist(["text", "error-text"]), value: v.string() }),
  v.strictObject({ type: v.picklist(["json", "error-json"]), value: v.any() }),
]);
const names = v.optional(v.array(v.string()));
/** Changes what the model is offered from now on. */
const tools = v.optional(v.strictObject({ hide: names, show: names }));

export const permissionAnswer = {
  approved: v.boolean(),
  choice: v.optional(v.picklist(["once", "always"])),
  reason: v.optional(v.string()),
  output: v.optional(outputSchema),
  tools,
};
export const continuationAnswer = {
  approved: v.boolean(),
  iterations: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1_000_000_000))),
  reason: v.optional(v.string()),
  tools,
};
/** A text for a tool that asked in words; a form of a tool's own may want data. */
const clarificationAnswer = {
  answer: v.union([v.string(), v.number(), v.boolean(), v.array(v.any()), v.looseObject({})]),
  tools,
};
const clientToolAnswer = { output: v.optional(v.any()), error: v.optional(v.any()), tools };

interface AnswerForm {
  readonly schema: v.GenericSchema;
  /** What is wanted, in words. */
  readonly wanted: string;
}

const forms: Readonly<Record<string, AnswerForm>> = {
  permission: {
    schema: v.strictObject(permissionAnswer),
    wanted: '{ approved: true | false, choice?: "once" | "always", reason?: "…", output?: … }',
  },
  continuation: {
    schema: v.strictObject(continuationAnswer),
    wanted: '{ approved: true | false, iterations?: 1 or more, reason?: "…" }',
  },
  clarification: { schema: v.strictObject(clarificationAnswer), wanted: '{ answer: "…" }' },
  // Without either, the tool returned nothing.
  "client-tool": { schema: v.strictObject(clientToolAnswer), wanted: '{ output: … } or { error: "…" }' },
};

/** What is wrong with an answer to a question of this kind, as a sentence; nothing when it can be taken. */
export function answerProblem(kind: string, answer: unknown): string | undefined {
  const form = Object.hasOwn(forms, kind) ? forms[kind] : undefined;
  const { issues } = form ? v.safeParse(form.schema, answer) : {};
  if (!form || !issues) return undefined;
  return `An answer to a ${kind} question ${faultOf(issues)}; it is ${form.wanted}.`;
}

/** An unknown key first: it is probably the misspelling of a missing one. */
function faultOf(issues: readonly v.BaseIssue<unknown>[]): string {
  const unknown = issues.find(({ type, expected }) => type === "strict_object" && expected === "never");
  const issue = unknown ?? issues[0]!;
  const key = issue.path?.map((item) => String(item.key).slice(0, 64)).join(".");
  if (unknown) return `has no key "${key}"`;
  if (!key) return "is an object";
  return issue.received === "undefined" ? `lacks "${key}"` : `can't have that value under "${key}"`;
}
