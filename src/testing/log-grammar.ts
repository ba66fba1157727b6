// The grammar of a log: which fact may follow which. What a store keeps is opaque to it; here is what it means.

import { callsOf, codec, type Fact, type FactType, isUnknown } from "../events/index.ts";
import type { StoredEvent } from "../log/store.ts";

interface Asked {
  readonly turnId: string | undefined;
  state: "open" | "answered" | "expired";
}

/** What the facts so far allow the next one to be. */
interface Reading {
  open: string | undefined;
  /** Turns that wait to be saved, oldest first: complete ones, and those that ended behind one that waits. */
  readonly staged: Set<string>;
  /** Whether the open turn is an execution: its calls are steps, which a fact tells of when they have returned. */
  isExecution: boolean;
  /** The calls of the open turn. */
  readonly calls: Set<string>;
  readonly asked: Map<string, Asked>;
  /** Background tasks: whether they have ended. */
  readonly tasks: Map<string, boolean>;
  /** The steps of the open turn. */
  readonly steps: Map<string, "started" | "done">;
  /** The signals of the branch, and whether a step took them. */
  readonly signals: Map<string, boolean>;
  /** Queued inputs: what became of them, or the turn that took them. */
  readonly inputs: Map<string, "waiting" | "withdrawn" | { turnId: string }>;
}

/** The problems in the order of the facts, as sentences. Payloads that are not facts are skipped. */
export function checkGrammar(log: readonly StoredEvent[]): string[] {
  const reading: Reading = {
    open: undefined,
    isExecution: false,
    staged: new Set(),
    calls: new Set(),
    asked: new Map(),
    tasks: new Map(),
    steps: new Map(),
    signals: new Map(),
    inputs: new Map(),
  };
  return log.flatMap((event) => {
    const fact = factOf(event);
    if (!fact) return [];
    const problem = problemIn(reading, fact);
    return problem === undefined ? [] : [`fact ${fact.seq} (${fact.type}): ${problem}`];
  });
}

function factOf(event: StoredEvent): Fact | undefined {
  try {
    const fact = codec.decode(event);
    return isUnknown(fact) ? undefined : fact;
  } catch {
    return undefined;
  }
}

type Rule<T extends FactType> = (reading: Reading, fact: Fact<T>) => string | undefined;

function problemIn<T extends FactType>(reading: Reading, fact: Fact<T>): string | undefined {
  return rules[fact.type](reading, fact);
}

const rules: { [T in FactType]: Rule<T> } = {
  "branch.created": anywhere,
  "branch.updated": anywhere,
  "history.cleared": anywhere,
  "history.restored": anywhere,
  "history.compacted": anywhere,
  "interrupt.requested": anywhere,
  "branch.forked"(reading) {
    reading.inputs.clear();
    return closesAll(reading);
  },
  "branch.reverted": closesAll,
  "turn.started"(reading, { id, inputs = [], metadata }) {
    const before = reading.open;
    leaveTurn(reading);
    reading.isExecution = metadata?.workflow !== undefined;
    reading.open = id;
    const problem = inputs.map((inputId) => takesInput(reading, inputId, id)).find((each) => each !== undefined);
    return before === undefined ? problem : `turn ${before} is still open`;
  },
  "turn.resumed": ofOpenTurn,
  "turn.parked": ofOpenTurn,
  "message.added"(reading, fact) {
    for (const { toolCallId } of callsOf(fact as Parameters<typeof callsOf>[0])) reading.calls.add(toolCallId);
    const { inputId, turnId } = fact;
    return ofOpenTurn(reading, fact) ?? (inputId === undefined ? undefined : takesInput(reading, inputId, turnId));
  },
  "permission.granted": (reading, fact) => ofOpenTurn(reading, fact) ?? ofCall(reading, fact.callId),
  "tool.started"(reading, fact) {
    const unknown = fact.callIds.find((callId) => !reading.calls.has(callId));
    return ofOpenTurn(reading, fact) ?? (unknown === undefined ? undefined : noCall(unknown));
  },
  "tool.returned": ofOpenTurn,
  "step.started"(reading, fact) {
    const problem =
      ofOpenTurn(reading, fact) ?? (reading.steps.get(fact.key) === "done" ? isDone(fact.key) : undefined);
    reading.steps.set(fact.key, "started");
    return problem;
  },
  "step.returned"(reading, fact) {
    const { signalId } = fact;
    return endsStep(reading, fact) ?? (signalId === undefined ? undefined : takesSignal(reading, signalId));
  },
  "step.skipped": endsStep,
  "signal.received"({ signals }, { id }) {
    signals.set(id, false);
    return undefined;
  },
  "task.started"(reading, fact) {
    reading.tasks.set(fact.id, false);
    return ofOpenTurn(reading, fact) ?? ofCall(reading, fact.callId);
  },
  "task.ended"({ tasks }, { taskId }) {
    const hasEnded = tasks.get(taskId);
    tasks.set(taskId, true);
    if (hasEnded === undefined) return `task ${taskId} never began`;
    return hasEnded ? `task ${taskId} has ended before` : undefined;
  },
  "turn.handed": (reading, fact) => ofOpenTurn(reading, fact) ?? ofCall(reading, fact.callId),
  "content.attached"(reading, { turnId }) {
    return turnId === undefined ? undefined : ofOpenTurn(reading, { turnId });
  },
  "state.changed"(reading, { turnId }) {
    return turnId === undefined ? undefined : ofOpenTurn(reading, { turnId });
  },
  "turn.staged"(reading, fact) {
    const problem = ofOpenTurn(reading, fact);
    leaveTurn(reading);
    reading.staged.add(fact.turnId);
    return problem;
  },
  "turn.committed": (reading, fact) => takesTurn(reading, fact, { withEarlier: true }),
  "turn.ended"(reading, fact) {
    const waits = reading.staged.size > 0;
    const problem = takesTurn(reading, fact);
    if (waits) reading.staged.add(fact.turnId);
    return problem;
  },
  "turn.discarded": (reading, fact) => takesTurn(reading, fact),
  "interaction.opened"(reading, { id, turnId, callId }) {
    reading.asked.set(id, { turnId, state: "open" });
    return turnId === undefined ? undefined : (ofOpenTurn(reading, { turnId }) ?? ofCall(reading, callId));
  },
  "interaction.answered"(reading, { interactionId }) {
    const asked = reading.asked.get(interactionId);
    const problem = settles(reading, asked, interactionId);
    if (asked && asked.state !== "open") return `interaction ${interactionId} was ${asked.state} before`;
    if (asked) asked.state = "answered";
    return problem;
  },
  "input.queued"({ inputs }, { id }) {
    inputs.set(id, "waiting");
    return undefined;
  },
  "input.edited": (reading, { inputId }) => ofWaiting(reading, inputId),
  "input.withdrawn"(reading, { inputId }) {
    const problem = ofWaiting(reading, inputId);
    reading.inputs.set(inputId, "withdrawn");
    return problem;
  },
  // An expiry is written without a check: of an answer and an expiry, the first in the log counts.
  "interaction.expired"(reading, { interactionId }) {
    const asked = reading.asked.get(interactionId);
    const problem = settles(reading, asked, interactionId);
    if (asked?.state === "expired") return `interaction ${interactionId} was expired before`;
    if (asked?.state === "open") asked.state = "expired";
    return problem;
  },
};

function anywhere(): undefined {}

function ofOpenTurn({ open }: Reading, { turnId }: { turnId: string }): string | undefined {
  return turnId === open ? undefined : `turn ${turnId} is not open`;
}

/** A step has one result. */
function endsStep(reading: Reading, fact: { turnId: string; key: string }): string | undefined {
  const problem = ofOpenTurn(reading, fact) ?? (reading.steps.get(fact.key) === "done" ? isDone(fact.key) : undefined);
  reading.steps.set(fact.key, "done");
  return problem;
}

function isDone(key: string): string {
  return `step ${key} has its result`;
}

function takesSignal({ signals }: Reading, signalId: string): string | undefined {
  const isTaken = signals.get(signalId);
  signals.set(signalId, true);
  if (isTaken === undefined) return `signal ${signalId} was never received`;
  return isTaken ? `signal ${signalId} was taken before` : undefined;
}

function ofCall({ calls, isExecution }: Reading, callId: string | undefined): string | undefined {
  return callId === undefined || isExecution || calls.has(callId) ? undefined : noCall(callId);
}

function noCall(callId: string): string {
  return `the turn has no call ${callId}`;
}

function settles({ open }: Reading, asked: Asked | undefined, interactionId: string): string | undefined {
  if (!asked) return `interaction ${interactionId} was never opened`;
  if (asked.turnId === undefined || asked.turnId === open) return undefined;
  return `turn ${asked.turnId} of interaction ${interactionId} is not open`;
}

/** The turn is the open one, or one that waits; those that wait before it may go with it. */
function takesTurn(reading: Reading, { turnId }: { turnId: string }, { withEarlier = false } = {}): string | undefined {
  const { staged } = reading;
  const isStaged = staged.has(turnId);
  const problem = isStaged ? undefined : ofOpenTurn(reading, { turnId });
  if (problem !== undefined) return problem;
  if (!isStaged) leaveTurn(reading);
  if (withEarlier) {
    for (const each of [...staged]) {
      if (each === turnId) break;
      staged.delete(each);
    }
  }
  staged.delete(turnId);
  return undefined;
}

function ofWaiting({ inputs }: Reading, inputId: string): string | undefined {
  const state = inputs.get(inputId);
  if (state === "waiting") return undefined;
  if (state === undefined) return `input ${inputId} was never queued`;
  return state === "withdrawn" ? `input ${inputId} was withdrawn` : `turn ${state.turnId} took input ${inputId} before`;
}

/** A queued input is taken by one turn, which may say so with its beginning and with each of the input's messages. */
function takesInput(reading: Reading, inputId: string, turnId: string): string | undefined {
  const state = reading.inputs.get(inputId);
  if (typeof state === "object" && state.turnId === turnId) return undefined;
  const problem = ofWaiting(reading, inputId);
  reading.inputs.set(inputId, { turnId });
  return problem;
}

function closesAll(reading: Reading): undefined {
  leaveTurn(reading);
  reading.staged.clear();
}

function leaveTurn(reading: Reading): void {
  reading.open = undefined;
  reading.calls.clear();
  reading.steps.clear();
}
