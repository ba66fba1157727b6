// Subagents: an agent as a tool of another one.

import { BoughError } from "../base/errors.ts";
import { checkOptions, number, type OptionCheck, object, oneOf, optionTable, text } from "../base/options.ts";
import { contentIdOf } from "../events/files.ts";
import { checkPolicy, spawnChecks } from "../runs/children/policy.ts";
import type {
  Child,
  InputOf,
  PermissionRule,
  SpawnableAgent,
  SpawnOptions,
  ToolContext,
  ToolInput,
  ToolRetry,
} from "../tools/index.ts";
import { startableOf } from "./agent.ts";
import { isBackgroundCall, ownInput, withBackground } from "./background-input.ts";
import { rememberSubagent } from "./kin.ts";
import { notAnAgent, refuseStore } from "./startable.ts";

/** How an agent works as a tool. */
export interface SubagentOptions<Input extends ToolInput = ToolInput> extends Omit<SpawnOptions, "key" | "mode"> {
  /** What the model reads about the tool. */
  readonly description: string;
  /** The schema of the tool's input (default: `{ input: string }`). The child is asked with `input`, or else with the whole as JSON. */
  readonly input?: Input;
  /** Whether a person must allow a call (default true). */
  readonly permission?: PermissionRule<InputOf<Input>>;
  /** How a failed child is tried again: with a new one, on a branch of its own. */
  readonly retry?: ToolRetry;
  /** Interrupts the child after this time. */
  readonly timeoutMs?: number;
  /**
   * "wait" (default): the call waits for the child. "background": it returns a receipt, and the child's end begins a turn. "model":
   * the model says so with each call (`background: true`).
   */
  readonly mode?: "wait" | "background" | "model";
}

const permission: OptionCheck = {
  fits: (value) => typeof value === "boolean" || typeof value === "function",
  wanted: "true, false or a function of the input",
};
const { key: _key, mode: _mode, ...policy } = spawnChecks;
const subagentTable = optionTable<SubagentOptions>({
  ...policy,
  description: text,
  input: object,
  permission,
  retry: object,
  timeoutMs: number,
  mode: oneOf("wait", "background", "model"),
});

/**
 * An agent as a tool. Each call runs the agent as a child, on a hidden branch that begins with the parent's conversation; the
 * result is the child's text, or its structured output.
 *
 * @example
 * const researcher = createAgent({ name: "researcher", model, instructions: "Answer with sources." });
 * const boss = createAgent({
 *   model,
 *   store: "./sessions",
 *   tools: { research: subagent(researcher, { description: "Researches one question." }) },
 * });
 */
export function subagent<Input extends ToolInput = ToolInput>(agent: SpawnableAgent, options: SubagentOptions<Input>) {
  checkOptions("The options of subagent", options, subagentTable);
  const { description, input = defaultInput, permission = true, retry, timeoutMs, mode = "wait", ...spawn } = options;
  if (typeof description !== "string" || description === "") {
    throw new BoughError("invalid_argument", "A subagent needs a description: the model chooses it by that.");
  }
  if (typeof agent !== "string") {
    const found = startableOf(Object(agent));
    if (!found) throw notAnAgent();
    refuseStore(found);
  }
  checkPolicy({ ...spawn, mode: mode === "wait" ? "wait" : "background" });
  if (mode === "background" && (retry || timeoutMs !== undefined)) {
    const sentence = 'retry and timeoutMs are for calls that wait; with mode: "background", use limits: { turnMs }.';
    throw new BoughError("invalid_argument", sentence);
  }
  const execute = async (given: InputOf<Input>, context: Pick<ToolContext, "spawn">) => {
    const asked = mode === "model" ? ownInput(given) : given;
    const isBackground = mode === "background" || (mode === "model" && isBackgroundCall(given));
    const { notify, ...waiting } = spawn;
    const how = isBackground ? { ...spawn, mode: "background" as const } : waiting;
    const child = await context.spawn(agent, textOf(asked), { key: "", ...how });
    if (child.status === "started") return { taskId: child.taskId, status: "started" };
    return spawn.output === undefined ? withFiles(child) : child.output;
  };
  const { notify } = spawn;
  const rule = typeof notify === "function" ? notify : undefined;
  if (typeof agent !== "string") rememberSubagent(execute, { agent, isFramed: spawn.prompt === "parent", rule });
  return {
    description,
    input: mode === "model" ? (withBackground(input) as ToolInput as Input) : input,
    permission,
    ...(retry && { retry }),
    ...(timeoutMs !== undefined && { timeoutMs }),
    execute,
  };
}

const defaultInput = {
  jsonSchema: {
    type: "object",
    properties: { input: { type: "string", description: "The task, with everything the agent needs to know." } },
    required: ["input"],
    additionalProperties: false,
  },
} as const;

/** The child's text, and what the parent's model has to know to read the files that come with it. */
function withFiles({ text, files }: Pick<Child, "text" | "files">): string {
  if (files.length === 0) return text;
  const lines = files.map((file) => `- ${file.filename ?? "file"}, ${file.mediaType}: id ${contentIdOf(file)}`);
  return `${text}\n\nFiles:\n${lines.join("\n")}`;
}

function textOf(given: unknown): string {
  const { input } = Object(given) as { input?: unknown };
  return typeof input === "string" ? input : JSON.stringify(given);
}
