// The queue of a branch: inputs that wait for a turn, and which of them a turn takes.
//   Queue-1. An input is in the queue from `input.queued` until the first fact that takes or withdraws it.
//   Queue-2. The queue is replaced, never changed in place: views share it.

import type { Fact, Message, NewMessage, QueuedInput, TurnRequest } from "../events/index.ts";
import type { BranchView, OpenTurn } from "./view.ts";

export function foldQueued(view: BranchView, fact: Fact<"input.queued">): void {
  const { id, at: queuedAt, when, messages, source, agentId, by, metadata, request } = fact;
  const input = {
    id,
    queuedAt,
    when,
    messages,
    ...(source && { source }),
    ...(agentId !== undefined && { agentId }),
    ...(by !== undefined && { by }),
    ...(metadata && { metadata }),
    ...(request && { request }),
  };
  view.queue = [...view.queue, Object.freeze(input as QueuedInput)];
}

export function foldEdited(view: BranchView, { inputId, at: editedAt, messages, when }: Fact<"input.edited">): void {
  const edit = { ...(messages && { messages }), ...(when && { when }), editedAt };
  view.queue = view.queue.map((each) => (each.id === inputId ? Object.freeze({ ...each, ...edit }) : each));
}

export function dropFromQueue(view: BranchView, ids: readonly string[]): void {
  if (view.queue.some(({ id }) => ids.includes(id))) view.queue = view.queue.filter(({ id }) => !ids.includes(id));
}

/**
 * The inputs that the next turn takes: one that is to be next, or the oldest and those that belong with it. Ends of background tasks that wait are taken
 * together; so are messages that came too late to steer a turn, if nothing stands between them. Others have a turn each.
 */
export function nextInputs(queue: readonly QueuedInput[]): readonly QueuedInput[] {
  const urgent = queue.find(({ when }) => when === "next");
  if (urgent) return [urgent];
  const [first, ...rest] = queue;
  if (!first) return [];
  const alike = (each: QueuedInput) => isAskedAlike(first, each);
  if (first.source) return [first, ...rest.filter((each) => each.source && alike(each))];
  if (first.when === "idle") return [first];
  const end = rest.findIndex((each) => each.when !== "steer" || each.source || !alike(each));
  return [first, ...(end < 0 ? rest : rest.slice(0, end))];
}

function isAskedAlike(a: QueuedInput, b: QueuedInput): boolean {
  return a.agentId === b.agentId && a.by === b.by && isSame(a.request, b.request);
}

/**
 * The inputs that join the open turn now. One that asks for something else than the turn (another agent, config, output,
 * context or caller) waits for a turn of its own, and so do those behind it.
 */
export function steeringInputs({ queue, open }: Pick<BranchView, "queue" | "open">): readonly QueuedInput[] {
  const steering = open ? queue.filter(({ when }) => when === "steer") : [];
  const end = steering.findIndex((each) => !fitsTurn(each, open!));
  return end < 0 ? steering : steering.slice(0, end);
}

function fitsTurn({ agentId, request = {} }: QueuedInput, turn: OpenTurn): boolean {
  if (agentId !== turn.runs.at(-1)?.agentId) return false;
  const { questions: _questions, ...asked } = request;
  return Object.entries(asked).every(([key, value]) => isSame(value, turn.request?.[key as keyof TurnRequest]));
}

/** Both were read from JSON, whose keys keep their order. */
function isSame(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

/** The messages that an input adds to a turn. */
export function messagesOfInput({ id, messages }: QueuedInput): (NewMessage & { readonly id: string })[] {
  return messages.map((message, i) => ({ ...message, id: `${id}.${i + 1}` }));
}

/** How the messages of an input are marked in the turn that takes it. */
export function sourceOfInput({ source }: QueuedInput, isSteering: boolean): "user" | NonNullable<Message["source"]> {
  return source?.kind ?? (isSteering ? "steer" : "user");
}
