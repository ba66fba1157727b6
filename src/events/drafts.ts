// Drafts: the one place where facts are made, one function for each type. A draft has its id and its time; the log gives
// it its number. What is undefined in a draft is left out when it is written.

import type { Clock } from "../base/clock.ts";
import { BoughError } from "../base/errors.ts";
import type { Ids } from "../base/ids.ts";
import type { JsonObject } from "../base/json.ts";
import type { Draft, FactPayload, FactType } from "./codec.ts";
import type { NewMessage, ToolOutput, ToolResultPart } from "./message.ts";

/** Where ids and times come from. */
export interface DraftSource {
  readonly ids: Ids;
  readonly clock: Pick<Clock, "now">;
}

/** A payload of facts that name their turn, without it. */
type InTurn<Type extends FactType> = Omit<FactPayload<Type>, "turnId">;

/** One tool's result. */
export interface ToolReturn {
  readonly callId: string;
  readonly toolName: string;
  readonly output: ToolOutput;
  readonly providerOptions?: JsonObject;
  /** The child that the call ran, or several, and what they used. */
  readonly child?: ChildEnd;
  readonly children?: ChildEnd[];
  readonly usage?: JsonObject;
}

/** Where a child of a call worked, and how its turn ended. */
export type ChildEnd = NonNullable<FactPayload<"tool.returned">["child"]>;

function stamp({ ids, clock }: DraftSource): { id: string; at: number } {
  return { id: ids.next(), at: clock.now() };
}

// Branches

export function branchCreated(source: DraftSource, branch: FactPayload<"branch.created">): Draft<"branch.created"> {
  return { ...stamp(source), type: "branch.created", ...branch };
}

export function branchForked(source: DraftSource, fork: FactPayload<"branch.forked">): Draft<"branch.forked"> {
  return { ...stamp(source), type: "branch.forked", ...fork };
}

export function branchUpdated(source: DraftSource, changes: FactPayload<"branch.updated">): Draft<"branch.updated"> {
  return { ...stamp(source), type: "branch.updated", ...changes };
}

export function branchReverted(source: DraftSource, revert: FactPayload<"branch.reverted">): Draft<"branch.reverted"> {
  return { ...stamp(source), type: "branch.reverted", ...revert };
}

// Turns

/** The id of the fact is the turn's. */
export function turnStarted(
  { clock }: DraftSource,
  id: string,
  asked: FactPayload<"turn.started">,
): Draft<"turn.started"> {
  const { runId, agentId, by, metadata, request, inputs, continues } = asked;
  return { id, at: clock.now(), type: "turn.started", runId, agentId, by, metadata, request, inputs, continues };
}

export function turnResumed(source: DraftSource, turnId: string, asked: InTurn<"turn.resumed">): Draft<"turn.resumed"> {
  const { runId, agentId, by, metadata, request } = asked;
  return { ...stamp(source), type: "turn.resumed", turnId, runId, agentId, by, metadata, request };
}

export function turnParked(source: DraftSource, turnId: string, parked: InTurn<"turn.parked">): Draft<"turn.parked"> {
  return { ...stamp(source), type: "turn.parked", turnId, ...parked };
}

export function turnStaged(source: DraftSource, turnId: string, outcome: Outcome): Draft<"turn.staged"> {
  const { usage, summaries, children, iterations, reason, context } = outcome;
  return { ...stamp(source), type: "turn.staged", turnId, usage, summaries, children, iterations, reason, context };
}

export function turnCommitted(
  { ids, clock }: DraftSource,
  turnId: string,
  { usage, summaries, children, iterations, reason, context }: Outcome = {},
): Draft<"turn.committed"> {
  const outcome = { usage, summaries, children, iterations, reason, context };
  return { id: ids.next(), at: clock.now(), type: "turn.committed", turnId, ...outcome };
}

export function turnEnded(
  source: DraftSource,
  turnId: string,
  outcome: Outcome & Pick<FactPayload<"turn.ended">, "status" | "error">,
): Draft<"turn.ended"> {
  const { usage, summaries, children, iterations, reason, status, error } = outcome;
  return {
    ...stamp(source),
    type: "turn.ended",
    turnId,
    usage,
    summaries,
    children,
    iterations,
    reason,
    status,
    error,
  };
}

export function turnDiscarded(source: DraftSource, turnId: string, reason: string): Draft<"turn.discarded"> {
  return { ...stamp(source), type: "turn.discarded", turnId, reason };
}

/** How a turn closed. */
interface Outcome {
  readonly usage?: JsonObject | undefined;
  readonly summaries?: JsonObject | undefined;
  readonly children?: JsonObject | undefined;
  readonly iterations?: number | undefined;
  readonly reason?: string | undefined;
  readonly context?: FactPayload<"turn.committed">["context"];
}

export function turnHanded(source: DraftSource, turnId: string, handed: InTurn<"turn.handed">): Draft<"turn.handed"> {
  return { ...stamp(source), type: "turn.handed", turnId, ...handed };
}

// Messages and results

/** What is known of a message beside what it says. */
type MessageDetails = Pick<FactPayload<"message.added">, "usage" | "source" | "inputId" | "prompt">;

/** A message that is no tool's: those are results (`toolReturned`). A text stands for one text part. */
export function messageAdded(
  { ids, clock }: DraftSource,
  turnId: string,
  message: NewMessage,
  more: MessageDetails = {},
): Draft<"message.added"> {
  const { id = ids.next(), role, content, partial, providerOptions } = message;
  if (role === "tool") throw new BoughError("invalid_argument", "The results of tools are facts of their own.");
  const parts = role === "system" ? content : toParts(content);
  const { source, inputId, usage, prompt } = more;
  const draft: Mutable<Draft<"message.added">> = {
    id,
    at: clock.now(),
    type: "message.added",
    turnId,
    role,
    content: parts,
  };
  // Hot in every turn: most have none of these.
  if (partial) draft.partial = partial;
  if (providerOptions) draft.providerOptions = providerOptions;
  if (source) draft.source = source;
  if (inputId) draft.inputId = inputId;
  if (usage) draft.usage = usage;
  if (prompt) draft.prompt = prompt;
  return draft;
}

function toParts(content: NewMessage["content"]): NewMessage["content"] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

/** Messages in their order; a tool message becomes one fact for each of its results. */
export function messagesAdded(
  source: DraftSource,
  turnId: string,
  messages: readonly NewMessage[],
  more?: MessageDetails,
): Draft[] {
  const drafts: Draft[] = [];
  for (const message of messages) {
    if (message.role === "tool") drafts.push(...resultsReturned(source, turnId, message));
    else drafts.push(messageAdded(source, turnId, message, more));
  }
  return drafts;
}

function resultsReturned(source: DraftSource, turnId: string, { content }: NewMessage): Draft<"tool.returned">[] {
  const results =
    typeof content === "string" ? [] : content.filter((part): part is ToolResultPart => part.type === "tool-result");
  // Anything else has no fact of its own, and would be lost.
  if (results.length === 0 || results.length < content.length) {
    throw new BoughError("invalid_argument", "A tool message holds tool-result parts and nothing else.");
  }
  return results.map(({ toolCallId: callId, ...result }) => toolReturned(source, turnId, { callId, ...result }));
}

export function toolReturned(source: DraftSource, turnId: string, result: ToolReturn): Draft<"tool.returned"> {
  const { callId, toolName, output, providerOptions, child, children, usage } = result;
  const optional = {
    ...(providerOptions && { providerOptions }),
    ...(child && { child }),
    ...(children && { children }),
    ...(usage && { usage }),
  };
  return { ...stamp(source), type: "tool.returned", turnId, callId, toolName, output, ...optional };
}

// Steps of workflows

export function stepStarted(source: DraftSource, turnId: string, step: InTurn<"step.started">): Draft<"step.started"> {
  return { ...stamp(source), type: "step.started", turnId, ...step };
}

export function stepReturned(
  source: DraftSource,
  turnId: string,
  step: InTurn<"step.returned">,
): Draft<"step.returned"> {
  return { ...stamp(source), type: "step.returned", turnId, ...step };
}

export function stepSkipped(source: DraftSource, turnId: string, step: InTurn<"step.skipped">): Draft<"step.skipped"> {
  return { ...stamp(source), type: "step.skipped", turnId, ...step };
}

/** The id of the fact is the signal's. */
export function signalReceived(
  { clock }: Pick<DraftSource, "clock">,
  id: string,
  signal: FactPayload<"signal.received">,
): Draft<"signal.received"> {
  return { id, at: clock.now(), type: "signal.received", ...signal };
}

// What happens around calls

export function toolStarted(source: DraftSource, turnId: string, callIds: string[]): Draft<"tool.started"> {
  return { ...stamp(source), type: "tool.started", turnId, callIds };
}

export function permissionGranted(
  source: DraftSource,
  turnId: string,
  granted: InTurn<"permission.granted">,
): Draft<"permission.granted"> {
  return { ...stamp(source), type: "permission.granted", turnId, ...granted };
}

/** The id of the fact is the task's: new, unless it follows from what does the work. */
export function taskStarted(
  { ids, clock }: DraftSource,
  turnId: string,
  { id = ids.next(), ...task }: InTurn<"task.started"> & { readonly id?: string },
): Draft<"task.started"> {
  return { id, at: clock.now(), type: "task.started", turnId, ...task };
}

/** A task has one end, so its id follows from the task's. */
export function taskEnded({ clock }: Pick<DraftSource, "clock">, end: FactPayload<"task.ended">): Draft<"task.ended"> {
  return { id: `${end.taskId}.end`, at: clock.now(), type: "task.ended", ...end };
}

export function contentAttached(
  source: DraftSource,
  attached: FactPayload<"content.attached">,
): Draft<"content.attached"> {
  return { ...stamp(source), type: "content.attached", ...attached };
}

/** Nothing when nothing changes. Without a turn, the change takes effect at once. */
export function stateChanged(
  source: DraftSource,
  turnId: string | undefined,
  set: JsonObject = {},
): Draft<"state.changed">[] {
  return Object.keys(set).length === 0 ? [] : [{ ...stamp(source), type: "state.changed", turnId, set }];
}

// Questions and interruptions

/** A question of no turn: one of a background child, which no call waits for. */
export function interactionOpened(
  source: DraftSource,
  turnId: string | undefined,
  question: InTurn<"interaction.opened">,
): Draft<"interaction.opened"> {
  return { ...stamp(source), type: "interaction.opened", turnId, ...question };
}

export function interactionAnswered(
  source: DraftSource,
  answer: FactPayload<"interaction.answered">,
): Draft<"interaction.answered"> {
  return { ...stamp(source), type: "interaction.answered", ...answer };
}

export function interactionExpired(
  source: DraftSource,
  interactionId: string,
  reason: string,
): Draft<"interaction.expired"> {
  return { ...stamp(source), type: "interaction.expired", interactionId, reason };
}

export function interruptRequested(
  source: DraftSource,
  request: FactPayload<"interrupt.requested">,
): Draft<"interrupt.requested"> {
  return { ...stamp(source), type: "interrupt.requested", ...request };
}

// Queued inputs

/** The id of the fact is the input's. */
export function inputQueued(
  { clock }: DraftSource,
  id: string,
  input: FactPayload<"input.queued">,
): Draft<"input.queued"> {
  return { id, at: clock.now(), type: "input.queued", ...input };
}

export function inputEdited(source: DraftSource, edit: FactPayload<"input.edited">): Draft<"input.edited"> {
  return { ...stamp(source), type: "input.edited", ...edit };
}

export function inputWithdrawn(
  source: DraftSource,
  withdrawn: FactPayload<"input.withdrawn">,
): Draft<"input.withdrawn"> {
  return { ...stamp(source), type: "input.withdrawn", ...withdrawn };
}

// Compactions

/** The replacements' ids begin with the compaction's. */
export function historyCompacted(
  source: DraftSource,
  compaction: Omit<FactPayload<"history.compacted">, "replacements">,
  replacements: readonly NewMessage[],
): Draft<"history.compacted"> {
  const { id, at } = stamp(source);
  const shown = replacements.map(({ role, content }, i) => {
    if (role === "tool") {
      throw new BoughError("invalid_argument", "What replaces messages can't be a tool message.");
    }
    return { id: `${id}.${i + 1}`, role, content: role === "system" ? content : toParts(content) };
  });
  return { id, at, type: "history.compacted", ...compaction, replacements: shown };
}

export function historyCleared(source: DraftSource, cleared: FactPayload<"history.cleared">): Draft<"history.cleared"> {
  return { ...stamp(source), type: "history.cleared", ...cleared };
}

export function historyRestored(
  source: DraftSource,
  restored: FactPayload<"history.restored">,
): Draft<"history.restored"> {
  return { ...stamp(source), type: "history.restored", ...restored };
}
