// Records: what one fact says, in the shape in which a view holds it. Pure, and without a view.

import { type JsonObject, mergePatch } from "../base/json.ts";
import type { Draft, Fact, Message, Ownership } from "../events/index.ts";
import { mergeRequests } from "./request.ts";
import type { BranchHeader, Interaction, OpenTurn, RunRecord, TurnOutcome } from "./view.ts";

/** The question that a fact asks. */
export function interactionOf(fact: Fact<"interaction.opened">): Interaction {
  const { id, at, kind, request, turnId, callId, expiresAt } = fact;
  const optional = { ...(turnId && { turnId }), ...(callId && { callId }), ...(expiresAt && { expiresAt }) };
  return { id, kind, request, openedAt: at, ...optional } as Interaction;
}

/** The message that a fact adds. */
export function messageOf(fact: Draft<"message.added">): Message {
  const { id, at, turnId, role, content, partial, providerOptions, source, inputId } = fact;
  const message: Mutable<Message> = { id, role, content: content as Message["content"], createdAt: at, turnId };
  if (partial) message.partial = partial;
  if (providerOptions) message.providerOptions = providerOptions;
  if (source && source !== "user") message.source = source;
  if (inputId) message.inputId = inputId;
  return Object.freeze(message);
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

export function runOf({
  at,
  runId,
  agentId,
}: {
  at: number;
  runId?: string | undefined;
  agentId?: string | undefined;
}) {
  const run: { runId?: string; agentId?: string; startedAt?: number } = {};
  if (runId) run.runId = runId;
  if (agentId) run.agentId = agentId;
  run.startedAt = at;
  return Object.freeze(run as RunRecord);
}

export function askedOf({
  by,
  metadata,
  request,
}: Fact<"turn.started">): Pick<OpenTurn, "by" | "metadata" | "request"> {
  return { ...(by !== undefined && { by }), ...(metadata && { metadata }), ...(request && { request }) };
}

/** Who asked first stays; what a later run said anew overrides what the turn had. */
export function resumedWith<Turn extends Partial<Pick<OpenTurn, "metadata" | "request">>>(
  turn: Turn,
  { metadata, request: anew }: Fact<"turn.resumed">,
): Turn {
  const request = mergeRequests(turn.request, anew);
  return {
    ...turn,
    ...(metadata && { metadata: mergePatch(turn.metadata ?? {}, metadata) }),
    ...(request && { request }),
  };
}

export function outcomeOf(fact: Fact<"turn.staged" | "turn.committed" | "turn.ended">): TurnOutcome {
  const { reason, iterations, usage, children } = fact;
  const outcome: Mutable<TurnOutcome> = {};
  if (reason !== undefined) outcome.reason = reason;
  if (iterations !== undefined) outcome.iterations = iterations;
  if (usage !== undefined) outcome.usage = usage as JsonObject;
  if (children !== undefined) outcome.children = children as JsonObject;
  return outcome;
}

export function headerOf(fact: Fact<"branch.created" | "branch.forked">): BranchHeader {
  return updateHeader({ metadata: {}, ...ownershipOf(fact as Ownership) }, fact);
}

function ownershipOf({ owner, visibility }: Ownership): Ownership {
  return { ...(owner && { owner }), ...(visibility && { visibility }) };
}

export function updateHeader(
  header: BranchHeader,
  changes: Partial<Omit<Fact<"branch.updated">, "type">>,
): BranchHeader {
  const {
    name = header.name,
    description = header.description,
    tags = header.tags,
    metadata = header.metadata,
  } = changes;
  return {
    ...(typeof name === "string" && { name }),
    ...(typeof description === "string" && { description }),
    ...(tags && { tags }),
    metadata,
    ...ownershipOf(header),
  };
}
