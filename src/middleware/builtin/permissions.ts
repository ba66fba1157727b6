// Permissions: who may run what. A denial is an ordinary result that the model reads; the turn goes on. A call that
// needs permission and runs without a question is recorded in the log (`permission.granted`).

import * as v from "valibot";
import type { Json, JsonObject } from "../../base/json.ts";
import { permissionAnswer } from "../../events/answers.ts";
import type { ToolOutput } from "../../events/index.ts";
import {
  asChoices,
  choiceOf,
  type PermissionChoice,
  permissionsKey,
  permissionsVersion,
  remember,
} from "../../projection/permissions.ts";
import { problems, type StateAccess } from "../../tools/index.ts";
import type { Answer, Middleware, PermissionGrant, ToolCallContext } from "../port.ts";
import { defineState } from "../state.ts";

/** How calls that need permission are decided. */
export interface PermissionOptions {
  /** What happens to calls that need permission: ask a person (the default), or allow or deny all of them. */
  readonly mode?: "ask" | "allow" | "deny";
  /** Whether calls need permission, by tool name. Overrides the tool's own `permission`. */
  readonly tools?: Readonly<Record<string, boolean>>;
}

const answerSchema = v.object(permissionAnswer);

/**
 * Answers given with "always". Version 1 stored them by tool name for all agents, so its values are ignored and the person is
 * asked again.
 */
const choicesState = defineState<PermissionChoice[]>({
  key: permissionsKey,
  scope: "session",
  version: permissionsVersion,
  initial: [],
});

/**
 * Asks before a tool that needs permission runs, and before repeating a call that may have run before a crash. `modeOf`
 * records in the log whose mode applied.
 */
export function permissions(
  { mode = "ask", tools = {} }: PermissionOptions = {},
  modeOf: NonNullable<PermissionGrant["modeOf"]> = "agent",
): Middleware {
  return {
    name: "permissions",
    state: [choicesState],
    async beforeToolCall(context) {
      if (context.isUnsure && context.tool.effect === "once") return askAgain(context);
      if (!(await isNeeded(context, tools))) return;
      if (mode === "allow") return context.grant(byMode(context, modeOf));
      if (mode === "deny") return deny(context, "Calls to this tool are not permitted in this run.");
      await decide(context);
    },
  };
}

/** A run's own mode is its caller's; an agent's is its program's. */
function byMode({ by }: ToolCallContext, modeOf: "agent" | "run"): PermissionGrant {
  return { how: "mode", modeOf, ...(modeOf === "run" && by !== undefined && { by }) };
}

/** A rule that throws does not grant permission. */
async function isNeeded({ tool, input }: ToolCallContext, tools: Readonly<Record<string, boolean>>): Promise<boolean> {
  const rule = ownValue(tools, tool.name) ?? tool.permission;
  if (typeof rule === "boolean") return rule;
  const parsed = await tool.parse(input);
  if ("problem" in parsed) return true;
  try {
    return (await rule(parsed.value)) !== false;
  } catch {
    return true;
  }
}

/** By what was answered for the tool, or else for this call. A call has a question of its own: "once" is for that call. */
async function decide(context: ToolCallContext): Promise<void> {
  const { call, tool, state } = context;
  const question = { kind: "permission", callId: call.toolCallId, request: requestOf(context) } as const;
  for (;;) {
    const remembered = choiceOf(asChoices(await state.get(choicesState)), context.agent.id, tool.name);
    if (remembered === undefined) {
      const given = await Promise.race([context.ask(question), choiceFor(context).made]);
      if (given) return follow(context, given);
      continue;
    }
    // What was said about this very call goes before what was said about all of them.
    const given = await context.withdraw(question);
    if (given) return follow(context, given);
    if (remembered.decision === "deny") return deny(context, "The user denied this tool for the whole session.");
    const { by, interactionId } = remembered;
    return context.grant({ how: "always", ...(by !== undefined && { by }), ...(interactionId && { interactionId }) });
  }
}

async function follow(context: ToolCallContext, given: Answer): Promise<void> {
  if (!given.answered) return deny(context, silence[given.reason]);
  const answer = answerOf(given);
  if (!answer) return deny(context, notUnderstood);
  if (answer.choice === "always") await rememberAnswer(context, given, answer.approved ? "allow" : "deny");
  if (!answer.approved) deny(context, answer.reason ?? "The user denied this call.");
}

async function rememberAnswer(
  context: ToolCallContext,
  { by, at = 0, interactionId }: Answer & { answered: true },
  decision: "allow" | "deny",
): Promise<void> {
  const { agent, tool, state } = context;
  const agentId = agent.id === undefined ? {} : { agentId: agent.id };
  const known = { ...(by !== undefined && { by }), ...(interactionId !== undefined && { interactionId }) };
  const choice: PermissionChoice = { ...agentId, tool: tool.name, decision, at, ...known };
  await state.update(choicesState, (choices) => remember(asChoices(choices), choice));
  choiceFor(context).tell();
}

/** A choice for a tool that calls of one run wait for, each beside the answer to its own question. */
interface AwaitedChoice {
  readonly made: Promise<undefined>;
  tell(): void;
}

/** By the state of a run, which its calls share, and by tool name. */
const awaited = new WeakMap<StateAccess, Map<string, AwaitedChoice>>();

function choiceFor({ state, tool }: ToolCallContext): AwaitedChoice {
  const choices = awaited.get(state) ?? new Map<string, AwaitedChoice>();
  awaited.set(state, choices);
  const known = choices.get(tool.name);
  if (known) return known;
  let tell = () => {};
  const made = new Promise<undefined>((resolve) => {
    tell = () => {
      choices.delete(tool.name);
      resolve(undefined);
    };
  });
  const choice = { made, tell };
  choices.set(tool.name, choice);
  return choice;
}

/**
 * Neither the mode nor a remembered answer covers a call that may have run: its effects can't be undone. The key counts the
 * starts, so that a crash after an approval leads to a new question and not to the earlier answer.
 */
async function askAgain(context: ToolCallContext): Promise<void> {
  const { call, starts } = context;
  const request = { ...requestOf(context), again: true };
  const given = await context.ask({ kind: "permission", callId: call.toolCallId, key: `again-${starts}`, request });
  const answer = given.answered ? answerOf(given) : undefined;
  if (answer?.approved) return;
  if (answer?.output !== undefined) return context.block(toOutput(answer.output));
  const why = given.answered ? (answer ? answer.reason : notUnderstood) : silence[given.reason];
  context.block({ type: "error-text", value: why ? `${outcomeUnknown} ${why}` : outcomeUnknown });
}

const outcomeUnknown =
  "This call was interrupted, and it is not known whether it took effect. It was not repeated; find out what it did before you call it again.";
const notUnderstood = "The answer to the permission question could not be understood.";
const silence = {
  expired: "The permission question was not answered in time, so the call was not run.",
  nobody: "No one is available to give permission, so the call was not run.",
};

function requestOf({ tool, input }: ToolCallContext): JsonObject {
  return { toolName: tool.name, input, ...(tool.description !== undefined && { description: tool.description }) };
}

function answerOf({ answer }: Answer & { answered: true }): v.InferOutput<typeof answerSchema> | undefined {
  const result = v.safeParse(answerSchema, answer);
  return result.success ? result.output : undefined;
}

function deny(context: ToolCallContext, reason: string): void {
  context.block(problems.denied(reason));
}

function toOutput(output: string | { type: string; value: Json }): ToolOutput {
  return typeof output === "string" ? { type: "text", value: output } : output;
}

function ownValue<T>(record: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}
