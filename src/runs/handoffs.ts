// Handoffs: a call after which the same turn goes on with another agent. Which one is a fact, so every process that takes the turn up
// goes on with it.
//   Handoffs-1. The handoff is written with the result of its call, in one append.
//   Handoffs-2. Of several in one message, the first counts; the others get an error.
//   Handoffs-3. The other agent goes on once every call of that message has its result: what was asked of one agent is done as that.

import { stateChanged, turnHanded } from "../events/drafts.ts";
import { callsOf, type Draft, type Message, type ToolOutput } from "../events/index.ts";
import type { BranchView, OpenTurn } from "../projection/index.ts";
import { agentKey } from "../projection/reserved-state.ts";
import type { PermissionRule, ToolDefinition } from "../tools/index.ts";
import type { ActiveTurn } from "./turn/active-turn.ts";

/** A handoff that a tool makes. */
interface HandoffTool {
  readonly name: string;
  /** Whether later turns begin with the other agent. */
  readonly stay: boolean;
}

type Execute = (...args: never[]) => unknown;

/** The tools that hand over, by what runs them. */
const tools = new WeakMap<Execute, HandoffTool>();

export interface HandoffToolOptions extends HandoffTool {
  readonly description: string;
  readonly permission: PermissionRule;
}

/** The tool of a handoff. */
export function handoffTool({ name, stay, description, permission }: HandoffToolOptions): ToolDefinition {
  const execute = () => "Handed over.";
  tools.set(execute, { name, stay });
  const input = { type: "object", properties: {}, additionalProperties: false } as const;
  return { description, input, permission, execute };
}

/** What a call that hands over adds to its result; the output in the place of its own, if it comes too late. */
export function handOver(
  turn: ActiveTurn,
  { callId, toolName }: { callId: string; toolName: string },
  output: ToolOutput,
): { drafts: readonly Draft[]; output: ToolOutput } {
  const { execute } = turn.plan.tools.get(toolName) ?? {};
  const made = execute && tools.get(execute as Execute);
  if (!made || output.type.startsWith("error") || output.type === "execution-denied") return { drafts: [], output };
  const { handing, plan, context, turnId } = turn;
  if (handing && handing.callId !== callId) {
    const value = `The conversation was handed over to "${handing.to}" in the same step.`;
    return { drafts: [], output: { type: "error-text", value } };
  }
  turn.handing = { callId, to: made.name };
  const path = plan.pathTo?.(made.name) ?? [made.name];
  const from = plan.stamp.name ?? plan.stamp.chain.at(-1)!;
  const handed = turnHanded(context, turnId, { callId, from, to: made.name, path: [...path] });
  const stays = made.stay ? stateChanged(context, turnId, { [agentKey]: path.length > 0 ? [...path] : null }) : [];
  return { drafts: [handed, ...stays], output };
}

/** The path to the agent that a turn begins with. */
export function stickyPath({ state }: Pick<BranchView, "state">): readonly string[] {
  return pathIn(state[agentKey]);
}

/** The path to the agent that goes on with an open turn (Handoffs-3). */
export function pathOf(view: BranchView): readonly string[] {
  const { handed, messages = [] } = view.open ?? ({} as Partial<OpenTurn>);
  if (!handed) return stickyPath(view);
  return isAnswered(messages, handed.callId) ? handed.path : (handed.before ?? stickyPath(view));
}

/** Whether every call of the message with this call has its result. */
function isAnswered(messages: readonly Message[], callId: string): boolean {
  const at = messages.findLastIndex((each) => callsOf(each).some(({ toolCallId }) => toolCallId === callId));
  const results = messages[at + 1];
  const given = new Set(
    results?.role === "tool" && typeof results.content !== "string"
      ? results.content.flatMap((part) => (part.type === "tool-result" ? part.toolCallId : []))
      : [],
  );
  return at >= 0 && callsOf(messages[at]!).every(({ toolCallId }) => given.has(toolCallId));
}

function pathIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((each): each is string => typeof each === "string") : [];
}
