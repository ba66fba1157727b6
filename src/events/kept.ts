// The facts: every kept event there is. The id of a fact is the id of what it brings into being: `turn.started` is the
// turn's id, `message.added` the message's, `interaction.opened` the interaction's. So no id is stored twice.

import * as v from "valibot";
import type { JsonObject } from "../base/json.ts";
import { kept } from "./define.ts";
import { contentSchema, outputSchema } from "./message.ts";
import { compactedRange, inForce } from "./overlay.ts";
import { promptSchema } from "./prompt.ts";
import { inputSourceSchema, queuedMessagesSchema, whenSchema } from "./queue.ts";
import { requestSchema } from "./request.ts";
import { notifySchema } from "./task.ts";

const id = v.pipe(v.string(), v.nonEmpty());
const jsonObject = v.custom<JsonObject>(
  (value) => typeof value === "object" && value !== null && !Array.isArray(value),
  "Expected an object",
);
const count = v.pipe(v.number(), v.integer(), v.minValue(0));
const turn = { turnId: id };
const header = {
  name: v.optional(v.string()),
  description: v.optional(v.string()),
  tags: v.optional(v.array(v.string())),
  metadata: v.optional(jsonObject),
};

const usage = v.looseObject({
  inputTokens: v.optional(count),
  outputTokens: v.optional(count),
  totalTokens: v.optional(count),
});

/** How a turn closed: what was used, how many model calls, why it stopped. */
const outcome = {
  usage: v.optional(usage),
  /** What of it went into summaries of the history. */
  summaries: v.optional(usage),
  /** What the turn's children used, with their own children; not part of `usage`. */
  children: v.optional(usage),
  iterations: v.optional(count),
  reason: v.optional(v.string()),
  /** What the last model call was sent and answered, in tokens: the size of the context. */
  context: v.optional(v.strictObject({ inputTokens: count, outputTokens: count, model: v.optional(v.string()) })),
};

/** Whose work the branch is (owner.ts). */
const ownership = {
  owner: v.optional(v.strictObject({ sessionId: id, branchId: id, turnId: id, callId: v.optional(id), kind: id })),
  visibility: v.optional(v.literal("hidden")),
};

const branchCreated = kept("branch.created", v.strictObject({ ...header, ...ownership }));

const branchForked = kept(
  "branch.forked",
  v.strictObject({
    from: v.strictObject({ branchId: id, seq: count }),
    /** The last message shared with the parent; absent when the branch begins before the first. */
    messageId: v.optional(id),
    /** How many messages are shared with the parent. */
    messages: count,
    /** The calls of the last batch that have their results; absent when all have. */
    answered: v.optional(v.array(id)),
    /** What differs from the branch state at the fork point (for `state: "current"` and `"none"`). */
    set: v.optional(jsonObject),
    ...inForce,
    ...header,
    ...ownership,
  }),
);

const branchUpdated = kept(
  "branch.updated",
  v.strictObject({
    name: v.optional(v.nullable(v.string())),
    description: v.optional(v.nullable(v.string())),
    tags: v.optional(v.nullable(v.array(v.string()))),
    /** The whole resulting metadata. */
    metadata: v.optional(jsonObject),
  }),
);

/** The projection goes back to a position; the log stays. Carries what a fold needs, so that replay never looks back. */
const branchReverted = kept(
  "branch.reverted",
  v.strictObject({
    to: count,
    /** How many messages remain. */
    messages: count,
    messageId: v.optional(id),
    /** The calls of the last batch that had their results by then; absent when all had. */
    answered: v.optional(v.array(id)),
    checkpointId: v.optional(id),
    /** The patch from the branch state before to the branch state at the position. */
    set: v.optional(jsonObject),
    ...inForce,
  }),
);

/** Who works on a turn, and how it was asked. */
const asked = {
  runId: v.optional(id),
  agentId: v.optional(id),
  /** The person or program that asked. */
  by: v.optional(v.string()),
  metadata: v.optional(jsonObject),
  request: v.optional(requestSchema),
};

const turnStarted = kept(
  "turn.started",
  v.strictObject({
    ...asked,
    /** The queued inputs that it takes. */
    inputs: v.optional(v.array(id)),
    /** The turn that a fork or a restart left behind, which this one goes on with; `steps`: with its steps, too. */
    continues: v.optional(v.strictObject({ turnId: id, steps: v.optional(v.boolean()) })),
  }),
);

/** Carries only what its caller said anew: that overrides what the turn has. */
const turnResumed = kept("turn.resumed", v.strictObject({ ...turn, ...asked }));

/**
 * A run leaves the turn open: nothing is wrong with it, and another process continues it. An `asleep` one is left alone until
 * the time it names, or until anything else is written on the branch.
 */
const turnParked = kept(
  "turn.parked",
  v.strictObject({
    ...turn,
    runId: v.optional(id),
    reason: v.optional(v.string()),
    asleep: v.optional(v.literal(true)),
    until: v.optional(count),
  }),
);

const messageAdded = kept(
  "message.added",
  v.strictObject({
    ...turn,
    role: v.picklist(["system", "user", "assistant"]),
    content: contentSchema,
    partial: v.optional(v.literal(true)),
    providerOptions: v.optional(jsonObject),
    /** Where it comes from; absent for what the run itself adds, such as a model's reply. */
    source: v.optional(v.picklist(["user", "steer", "task"])),
    /** The queued input that it is of. */
    inputId: v.optional(id),
    /** What the model call behind it used; of the message that closes a turn, the turn's own total says so. */
    usage: v.optional(usage),
    /** What a model's reply was made from. */
    prompt: v.optional(promptSchema),
  }),
);

/** Where a child of a call worked, and how its turn ended: at `seq` of its branch's log. */
const childEnd = v.strictObject({
  sessionId: id,
  branchId: id,
  turnId: id,
  seq: count,
  status: v.picklist(["completed", "interrupted", "failed"]),
});

/** One tool's result. Those of one batch form one message, in the order in which the model asked. */
const toolReturned = kept(
  "tool.returned",
  v.strictObject({
    ...turn,
    callId: id,
    toolName: id,
    output: outputSchema,
    providerOptions: v.optional(jsonObject),
    /** The child that the call ran; `children` when it ran several. */
    child: v.optional(childEnd),
    children: v.optional(v.array(childEnd)),
    /** What its children used, with their own children. */
    usage: v.optional(usage),
  }),
);

const stepError = v.looseObject({ message: v.string(), code: v.optional(v.string()) });

/** What a step of a workflow is. */
const stepKind = v.picklist(["step", "agent", "sleep", "ask", "wait", "flow"]);

/** A step that must never run twice is about to run; or one that sleeps until a time, or waits until then to be tried again. */
const stepStarted = kept(
  "step.started",
  v.strictObject({
    ...turn,
    key: id,
    kind: v.optional(stepKind),
    until: v.optional(count),
    /** How often it was tried before it waits. */
    tries: v.optional(count),
  }),
);

/** A step's result: it is never executed again in its turn. */
const stepReturned = kept(
  "step.returned",
  v.strictObject({
    ...turn,
    key: id,
    kind: v.optional(stepKind),
    /** Absent when there is none. */
    output: v.optional(v.any()),
    /** The stored content that has the output as JSON, where it is large. */
    contentId: v.optional(id),
    error: v.optional(stepError),
    tries: v.optional(count),
    ms: v.optional(v.number()),
    /** The digest of what it was given. */
    input: v.optional(v.string()),
    /** The agent that it ran, and what that used with its own children. */
    child: v.optional(childEnd),
    usage: v.optional(usage),
    /** The signal that it took. */
    signalId: v.optional(id),
  }),
);

/** A step is left out, for those who look at the execution. */
const stepSkipped = kept("step.skipped", v.strictObject({ ...turn, key: id, why: v.string() }));

/** A signal to a workflow, from anybody; before it is waited for, too. */
const signalReceived = kept(
  "signal.received",
  v.strictObject({ name: id, payload: v.optional(v.any()), by: v.optional(v.string()) }),
  { direction: "up" },
);

/** Calls that waited for an answer are about to run: written for tools that must never run twice. */
const toolStarted = kept("tool.started", v.strictObject({ ...turn, callIds: v.array(id) }));

/**
 * A call that needs permission runs without a question of its own: a mode allows it, or a permission that was remembered.
 * Written before the call begins. A denial needs no such fact: it is the call's result.
 */
const permissionGranted = kept(
  "permission.granted",
  v.strictObject({
    ...turn,
    callId: id,
    toolName: id,
    how: v.picklist(["mode", "always"]),
    /** Whose mode it was: the agent's own, or the one that the run was given. */
    modeOf: v.optional(v.picklist(["agent", "run"])),
    /** Who answered with "always", and to which question. */
    by: v.optional(v.string()),
    interactionId: v.optional(id),
  }),
);

/** Work that goes on after the call that began it has returned; its id is the task's. */
const taskStarted = kept(
  "task.started",
  v.strictObject({
    ...turn,
    name: v.string(),
    callId: v.optional(id),
    runId: v.optional(id),
    /** The child that does the work; without it, the work is a function of a process. */
    child: v.optional(v.strictObject({ sessionId: id, branchId: id, turnId: id })),
    /** The process that does it, if it is a function: it ends with that process. */
    owner: v.optional(v.string()),
    /** Which end of a child's task is queued on this branch; "custom" when code decides. */
    notify: v.optional(notifySchema),
  }),
);
const taskEnded = kept(
  "task.ended",
  v.strictObject({
    taskId: id,
    status: v.picklist(["completed", "failed", "cancelled"]),
    output: v.optional(v.any()),
    error: v.optional(v.looseObject({ message: v.string() })),
    reason: v.optional(v.string()),
    /** How the child that did it ended; its log has the result. */
    child: v.optional(childEnd),
    /** What the child used, with its own children. */
    usage: v.optional(usage),
  }),
);

/**
 * A call hands the turn over to another agent of the program. `path` leads from the agent that began the turn to the one that goes on, by
 * the names of handoffs; it is empty when that is the first one again.
 */
const turnHanded = kept("turn.handed", v.strictObject({ ...turn, callId: id, from: id, to: id, path: v.array(id) }));

/**
 * Stored content is attached to a turn: a file that a tool made, a picture or speech of the model. Its bytes are stored before
 * this is written.
 */
const contentAttached = kept(
  "content.attached",
  v.strictObject({
    turnId: v.optional(id),
    /** The message that it belongs to. */
    messageId: v.optional(id),
    /** The call whose tool made it. */
    callId: v.optional(id),
    contentId: id,
    name: v.optional(v.string()),
    mediaType: v.string(),
    size: count,
    kind: v.picklist(["artifact", "speech", "upload"]),
    /** What else is known of it. */
    meta: v.optional(jsonObject),
  }),
);

const stateChanged = kept(
  "state.changed",
  v.strictObject({
    turnId: v.optional(id),
    /** A merge patch of the branch-scoped state. */
    set: jsonObject,
  }),
);

/** The turn is complete but waits for the caller to save it. */
const turnStaged = kept("turn.staged", v.strictObject({ ...turn, ...outcome }));
const turnCommitted = kept("turn.committed", v.strictObject({ ...turn, ...outcome }));
const turnDiscarded = kept("turn.discarded", v.strictObject({ ...turn, reason: v.optional(v.string()) }));

const turnEnded = kept(
  "turn.ended",
  v.strictObject({
    ...turn,
    ...outcome,
    status: v.picklist(["interrupted", "failed"]),
    error: v.optional(v.looseObject({ message: v.string(), code: v.optional(v.string()) })),
  }),
);

const interactionOpened = kept(
  "interaction.opened",
  v.strictObject({
    turnId: v.optional(id),
    kind: v.picklist(["permission", "clarification", "continuation", "client-tool"]),
    callId: v.optional(id),
    /** Tells it from other questions of its kind about the same call. */
    key: v.optional(v.string()),
    request: jsonObject,
    expiresAt: v.optional(count),
  }),
  { channel: "interactive" },
);

const interactionAnswered = kept(
  "interaction.answered",
  v.strictObject({ interactionId: id, answer: jsonObject, by: v.optional(v.string()) }),
  { channel: "interactive", direction: "up" },
);

const interactionExpired = kept(
  "interaction.expired",
  v.strictObject({ interactionId: id, reason: v.optional(v.string()) }),
  { channel: "interactive" },
);

/** A request to stop the run, written by a process other than the one that runs it. */
const interruptRequested = kept("interrupt.requested", v.strictObject({ runId: id, reason: v.optional(v.string()) }), {
  channel: "control",
  direction: "up",
});

/** An input waits until a turn takes it: one of its own (`idle`; `next` before others), or the open one (`steer`). */
const { runId: _runId, ...sent } = asked;
const inputQueued = kept(
  "input.queued",
  v.strictObject({
    ...sent,
    messages: queuedMessagesSchema,
    when: whenSchema,
    source: v.optional(inputSourceSchema),
  }),
);

/** A queued input says something else, or is taken at another time. */
const inputEdited = kept(
  "input.edited",
  v.strictObject({
    inputId: id,
    messages: v.optional(queuedMessagesSchema),
    when: v.optional(whenSchema),
    by: v.optional(v.string()),
  }),
);

/** A queued input is not to be taken. */
const inputWithdrawn = kept(
  "input.withdrawn",
  v.strictObject({ inputId: id, by: v.optional(v.string()), reason: v.optional(v.string()) }),
);

/** Tokens of the prompt before and after. */
const sizes = v.strictObject({ before: count, after: count });

/** A range of messages is shown as something else: to models only (soft), or to people too (hard). The ledger stays. */
const historyCompacted = kept(
  "history.compacted",
  v.strictObject({
    ...compactedRange,
    /** Positions in the log of the compactions whose place it takes. */
    over: v.optional(v.array(count)),
    reason: v.optional(v.string()),
    strategy: v.optional(v.string()),
    model: v.optional(v.string()),
    usage: v.optional(usage),
    tokens: v.optional(sizes),
  }),
);

/** Outputs of old calls are shown to models as a short note. `at` is the position of the message with the results. */
const historyCleared = kept(
  "history.cleared",
  v.strictObject({
    results: v.array(v.strictObject({ at: count, callIds: v.array(id) })),
    reason: v.optional(v.string()),
    tokens: v.optional(sizes),
  }),
);

/** Takes a compaction or a clearing back: these are in force afterwards. */
const historyRestored = kept("history.restored", v.strictObject({ of: id, ...inForce }));

/** The definitions of all facts. */
export const keptEvents = [
  branchCreated,
  branchForked,
  branchUpdated,
  branchReverted,
  turnStarted,
  turnResumed,
  turnParked,
  messageAdded,
  permissionGranted,
  toolStarted,
  toolReturned,
  stepStarted,
  stepReturned,
  stepSkipped,
  signalReceived,
  taskStarted,
  taskEnded,
  turnHanded,
  contentAttached,
  stateChanged,
  turnStaged,
  turnCommitted,
  turnDiscarded,
  turnEnded,
  interactionOpened,
  interactionAnswered,
  interactionExpired,
  interruptRequested,
  inputQueued,
  inputEdited,
  inputWithdrawn,
  historyCompacted,
  historyCleared,
  historyRestored,
] as const;
