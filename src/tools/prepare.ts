// Tools of every make, as the one kind that a run knows: defineTool's, the AI SDK's tool(), and what sources bring.

import * as v from "valibot";
import { BoughError } from "../base/errors.ts";
import type { Json, JsonObject } from "../base/json.ts";
import { checkSpelling, optionKeys } from "../base/options.ts";
import type { ToolOutput } from "../events/index.ts";
import { fitting, messageOf, plainOutput } from "./output.ts";
import type { AnyTool, PermissionRule, Tool, ToolSet, ToolSource } from "./port.ts";
import { issueList } from "./problems.ts";
import { readSchema, unusable } from "./schema.ts";

type Spec =
  | {
      readonly type: "function";
      readonly name: string;
      readonly description?: string;
      readonly inputSchema: JsonObject;
    }
  | { readonly type: "provider"; readonly id: `${string}.${string}`; readonly name: string; readonly args: JsonObject };

const executeKey = optionKeys<Pick<AnyTool, "execute">>({ execute: true });

/** What every provider takes as a name. */
const legalName = /^[A-Za-z0-9_-]{1,64}$/;

// biome-ignore lint/suspicious/noExplicitAny: what a tool's functions take is between the tool and its schema
const anyFunction = v.custom<(...args: any[]) => any>((value) => typeof value === "function", "Expected a function");
// A timer can't be set further ahead.
const milliseconds = v.pipe(v.number(), v.maxValue(2 ** 31 - 1));
const rule = v.union([v.boolean(), anyFunction], "Expected a boolean or a function");

/** What is read of a tool; Bough's word first where the AI SDK has another one for it. */
const toolSchema = v.object({
  description: v.optional(v.union([v.string(), anyFunction], "Expected a string")),
  execute: v.optional(anyFunction),
  effect: v.optional(v.picklist(["retry", "read", "once"])),
  permission: v.optional(rule),
  needsApproval: v.optional(rule),
  timeoutMs: v.optional(v.pipe(milliseconds, v.minValue(1))),
  retry: v.optional(
    v.object({
      attempts: v.pipe(v.number(), v.integer(), v.minValue(1)),
      delayMs: v.optional(v.pipe(milliseconds, v.minValue(0))),
      when: v.optional(anyFunction),
    }),
  ),
  retain: v.optional(v.boolean()),
  overflow: v.optional(v.literal("artifact")),
  reconcile: v.optional(anyFunction),
  toOutput: v.optional(anyFunction),
  toModelOutput: v.optional(anyFunction),
});

type Given = v.InferOutput<typeof toolSchema>;

/** The tools of all sets and sources by name, ready to run; refuses what no provider or no run could use. */
export async function prepareTools(sets: readonly (ToolSet | ToolSource)[]): Promise<ReadonlyMap<string, Tool>> {
  const opened = await Promise.all(
    sets.map(async (set) => (isSource(set) ? { from: set.name, tools: await set.tools() } : { tools: set })),
  );
  const prepared = new Map<string, Tool>();
  const origins = new Map<string, string>();
  for (const [i, { from = `tool set ${i + 1}`, tools }] of opened.entries()) {
    for (const [name, given] of Object.entries(tools)) {
      const other = origins.get(name);
      if (other !== undefined) throw namedTwice(name, other, from);
      origins.set(name, from);
      prepared.set(name, await prepareTool(name, given));
    }
  }
  return prepared;
}

/** A tool as described to a model. */
export function toolSpec({ name, description, inputSchema, provider }: Tool): Spec {
  if (provider) return { type: "provider", id: provider.id, name, args: provider.args };
  return { type: "function", name, ...(description !== undefined && { description }), inputSchema };
}

async function prepareTool(name: string, tool: AnyTool): Promise<Tool> {
  if (!legalName.test(name) || name in Object.prototype) {
    throw unusable(
      `The tool "${name}"`,
      "a name must have 1 to 64 letters, digits, _ or -, and must not be a property of Object.prototype.",
    );
  }
  // Without it, the tool would silently be one that the client runs.
  if (!("execute" in tool)) checkSpelling(`The tool "${name}"`, tool, executeKey);
  const given = checked(name, tool);
  const { effect = "retry", timeoutMs, retry, retain, overflow, execute, reconcile } = given;
  if (effect === "once" && retry && retry.attempts > 1 && !retry.when) {
    throw unusable(`The tool "${name}"`, 'its effect is "once", so `retry.when` must select the errors to retry.');
  }
  const provider = providerOf(tool);
  const description = descriptionOf(name, given);
  const isElsewhere = provider !== undefined && tool.isProviderExecuted !== false && !execute;
  const schema = await readSchema(`The tool "${name}"`, isElsewhere ? {} : (tool.input ?? tool.inputSchema));
  const { inputSchema, isChecked, parse } = schema;
  return {
    name,
    ...(description !== undefined && { description }),
    inputSchema,
    isChecked,
    parse: isChecked ? parse : (input) => (isObject(input) ? parse(input) : notAnObject),
    effect,
    permission: permissionOf(given),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(retry && { retry: retry as NonNullable<Tool["retry"]> }),
    ...(retain && { retain }),
    ...(overflow && { overflow }),
    ...(provider && { provider }),
    ...(execute && { execute }),
    ...(reconcile && { reconcile: async (input, context) => settled(await reconcile(input, context)) }),
    toOutput: outputMaker(given),
  };
}

/** Arguments that are no JSON, or were cut off, are kept as a text; a tool that checks nothing would be run with it. */
const notAnObject = Promise.resolve({ problem: issueList([{ message: "They are not a JSON object." }]) });

function isObject(input: Json): boolean {
  return typeof input === "object" && input !== null && !Array.isArray(input);
}

function checked(name: string, tool: unknown): Given {
  const result = v.safeParse(toolSchema, tool);
  if (result.success) return result.output;
  const issue = result.issues[0];
  const path = v.getDotPath(issue);
  throw unusable(`The tool "${name}"`, `${path ? `${path}: ` : ""}${issue.message}.`);
}

function descriptionOf(name: string, { description }: Given): string | undefined {
  if (typeof description !== "function") return description;
  try {
    return String(description({ context: undefined }));
  } catch (cause) {
    throw unusable(
      `The tool "${name}"`,
      `its description function threw when called without a context (${messageOf(cause)}).`,
      cause,
    );
  }
}

/** A rule of the AI SDK also wants the call and the conversation; it gets their places, empty. */
function permissionOf({ permission, needsApproval }: Given): PermissionRule {
  if (permission !== undefined) return permission;
  if (typeof needsApproval !== "function") return needsApproval ?? false;
  return (input) => needsApproval(input, { toolCallId: "", messages: [] });
}

function providerOf({ type, id, args }: AnyTool): Tool["provider"] {
  if (type !== "provider" && type !== "provider-defined") return undefined;
  return { id: id as `${string}.${string}`, args: JSON.parse(JSON.stringify(args ?? {})) };
}

function outputMaker({ toOutput, toModelOutput }: Given): Tool["toOutput"] {
  if (toOutput) return toOutput;
  if (!toModelOutput) return plainOutput;
  return (output, { callId, input }) => toModelOutput({ toolCallId: callId, input, output });
}

function settled(answer: unknown): ToolOutput | "not-executed" | undefined {
  return answer === undefined || answer === "not-executed" ? answer : fitting(answer);
}

/** The values of a tool set are tools, and no tool is a function. */
function isSource(set: ToolSet | ToolSource): set is ToolSource {
  return typeof set.tools === "function";
}

function namedTwice(name: string, first: string, second: string): BoughError {
  const sentence = `Two tools are named "${name}": one from ${first}, one from ${second}.`;
  return new BoughError("invalid_argument", sentence, { data: { tool: name, from: [first, second] } });
}
