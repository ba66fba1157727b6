// Starting a background child: its branch is made and its turn begun before the call has its result, and the fact that there is a
// task is written with that. A call that runs again finds the child where it is, whatever died in between.

import { BoughError } from "../../base/errors.ts";
import { failpoint } from "../../base/failpoint.ts";
import type { BranchView } from "../../projection/index.ts";
import type { StartedTask } from "../../tools/index.ts";
import type { ChildAddress } from "../children/address.ts";
import { begunElsewhere, type ChildRequest, lostRaces } from "../children/child.ts";
import { createChild } from "../children/create.ts";
import { lookAt } from "../children/look.ts";
import { type ChildRun, type ParentRun, stampBelow } from "../children/port.ts";
import type { RunInput } from "../config.ts";
import { Lost, Parked } from "../endings.ts";
import { keptRule } from "./notice.ts";

/** Resolves when the child's turn is in its log: from then on it goes on without this process. */
export async function startTask(request: ChildRequest, address: ChildAddress): Promise<StartedTask> {
  const { turn, call, signal, options } = request;
  const { ref, turnId, taskId } = address;
  const receipt = { status: "started" as const, taskId, ref: { ...ref, turnId } };
  if (turn.tasks.isKnown(taskId)) return receipt;
  checkRequest(request);
  const { tasks } = await turn.view();
  if (!turn.tasks.reserve(taskId, tasks)) throw tooMany(request);
  const { notify } = options;
  turn.onChild({ ...ref, turnId, callId: call.callId, agent: stampOf(request) });
  const run = await begin(request, address).catch((error: unknown) => {
    turn.tasks.release(taskId);
    throw error;
  });
  turn.tasks.begin(call.callId, {
    taskId,
    name: call.toolName,
    child: { ...ref, turnId },
    notify: keptRule(notify),
    rule: typeof notify === "function" ? notify : undefined,
    run,
  });
  // Whoever ended the turn meanwhile did not know of this child.
  if (signal.aborted && !isHandedOn(signal.reason)) await turn.tasks.callOff(signal.reason);
  if (signal.aborted) throw signal.reason;
  return receipt;
}

function stampOf({ turn, agent }: ChildRequest) {
  return stampBelow(turn.plan.stamp, { id: agent.id, name: agent.name, chain: [agent.name], depth: 0 });
}

/** Refuses a task whose end could not begin a turn. */
function checkRequest({ turn, options }: ChildRequest): void {
  const missing = options.notify === "none" ? undefined : turn.plan.wholeRequest?.missing;
  if (!missing) return;
  const sentence = `A background task can't begin a turn at its end here, because the log can't keep ${missing.join(", ")} of this run. Give it to the agent, or use notify: "none".`;
  throw new BoughError("request_incomplete", sentence, { data: { missing } });
}

function tooMany({ turn }: ChildRequest): BoughError {
  const { tasks: value } = turn.plan.limits;
  turn.emitter.live({ type: "limit-reach", limit: "tasks", value });
  const sentence = `At most ${value} background tasks can go on at a time on one branch (limits.tasks).`;
  return new BoughError("limit_exceeded", sentence, { data: { limit: "tasks", value } });
}

/** Looks at the child and does what is next, until it is begun. The run, if it is one of this process. */
async function begin(request: ChildRequest, address: ChildAddress): Promise<ChildRun | undefined> {
  const { turn, host, agent, call, messageId, options, signal } = request;
  const { context } = turn;
  const { depth } = stampOf(request);
  for (;;) {
    if (signal.aborted) throw signal.reason;
    const state = await lookAt(context, address);
    if (state.at === "missing") {
      const view = () => turn.view();
      await createChild({ context, host, agent, call, messageId, depth, options, view, awaited: false }, address);
      failpoint("run.child.created");
    } else if (state.at === "unbegun") {
      const run = await launch(request, address, request.input);
      if (run) return run;
    } else if (state.at === "open" && !state.isHeld && state.questions.length === 0) {
      const run = await launch(request, address, undefined);
      if (run) return run;
    } else return undefined;
  }
}

/** A run of the child, once it has its branch; undefined when another one was faster. */
async function launch(
  request: ChildRequest,
  address: ChildAddress,
  input: RunInput | undefined,
): Promise<ChildRun | undefined> {
  const { turn, agent, run: options, options: spawning } = request;
  const { ref, turnId, inputId } = address;
  const check = (view: BranchView) => {
    if (view.open || view.turns.some(({ id }) => id === turnId)) throw begunElsewhere(address);
  };
  if (input !== undefined) turn.context.ids.vouch(inputId);
  const message = input === undefined ? undefined : [{ id: inputId, role: "user" as const, content: input as string }];
  const { model, instructions, toolSpecs } = turn.plan;
  const frame = { model, toolSpecs, ...(instructions !== undefined && { instructions }) };
  const child = agent.launch(message, {
    context: turn.context,
    ref,
    parent: parentRun(request, address.taskId),
    options,
    ...(spawning.prompt === "parent" && { frame }),
    ...(input !== undefined && { opening: { turnId, check } }),
  });
  child.discardEvents();
  // How it ended is told by its log.
  child.result.catch(() => {});
  try {
    await child.started;
    failpoint("run.child.begun");
    return child;
  } catch (error) {
    if (lostRaces.some((code) => BoughError.is(error, code))) return undefined;
    throw error;
  }
}

/** The run that started it, as the child sees it: it counts nothing of the child, which outlives it. */
function parentRun({ turn }: ChildRequest, taskId: string): ParentRun {
  const { plan, emitter } = turn;
  return {
    agent: plan.stamp,
    rootId: turn.rootId,
    emitter,
    maxDepth: plan.limits.maxDepth,
    leaving: plan.leaving,
    isListenedTo: () => true,
    see: (fact) => {
      if (fact.type.startsWith("interaction.")) turn.host.tasks.look(turn.held.ref, taskId);
    },
    tokenLimit: () => undefined,
    track: () => {},
  };
}

/** Whether a turn that ends for this reason goes on elsewhere. */
function isHandedOn(reason: unknown): boolean {
  return reason instanceof Parked || reason instanceof Lost;
}
