// Settling: what a branch learns of its background children, wherever they ran. Nothing here remembers anything: the logs of both
// decide, so any process may do it, any number of times.
//   Settle-1. A child's end is on the branch once, together with the input that begins a turn about it: one append.
//   Settle-2. The branch has an open mirror of each open question of the child, and none of any other.
//   Settle-3. A task whose beginning the branch shows no more ends without a turn.

import { failpoint } from "../../base/failpoint.ts";
import type { JsonObject } from "../../base/json.ts";
import { inputQueued, interactionExpired, interactionOpened } from "../../events/drafts.ts";
import type { Draft, Fact, OpenTask, QueuedMessage, TurnRequest } from "../../events/index.ts";
import type { BranchRef } from "../../log/store.ts";
import type { BranchView, Interaction } from "../../projection/index.ts";
import type { Context } from "../../sessions/context.ts";
import { mirrorOf } from "../../sessions/interactions.ts";
import { onNewest } from "../../sessions/on-newest.ts";
import { withdrawInput } from "../../sessions/queue.ts";
import { endTask } from "../../sessions/tasks.ts";
import { type ChildState, isGone, lookAt } from "../children/look.ts";
import { type NotifyRule, parentOf } from "../children/port.ts";
import { endingOf, endOf } from "./answer.ts";
import { noticeOf } from "./notice.ts";

/** Looks at one task: writes its end if its child has one, or mirrors what the child asks. Returns the facts of the end. */
export async function settleTask(
  context: Context,
  ref: BranchRef,
  taskId: string,
  ruleOf: (task: OpenTask) => NotifyRule | undefined | Promise<NotifyRule | undefined>,
): Promise<readonly Fact[]> {
  const view = await viewOf(context, ref);
  const task = view?.tasks.find(({ id }) => id === taskId);
  if (!task?.child) return [];
  const state = await lookAt(context, addressOf(task.child));
  if (state.at === "open") {
    await mirrorQuestions(context, ref, task);
    return [];
  }
  failpoint("run.task.ended");
  const facts = await deliver(context, ref, task, { state, rule: await ruleOf(task) });
  if (facts.length > 0) failpoint("run.task.delivered");
  return facts;
}

async function viewOf({ views }: Context, ref: BranchRef): Promise<BranchView | undefined> {
  try {
    return (await views.loadForRun(ref)).view;
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

function addressOf({ sessionId, branchId, turnId }: NonNullable<OpenTask["child"]>) {
  return { ref: { sessionId, branchId }, turnId };
}

/** Settle-1. A child that is gone, or whose turn was taken back, was cancelled. */
async function deliver(
  context: Context,
  ref: BranchRef,
  task: OpenTask,
  { state, rule }: { state: ChildState; rule: NotifyRule | undefined },
): Promise<readonly Fact[]> {
  const child = task.child!;
  const closed = state.at === "closed" ? state : undefined;
  const unseen = state.at === "missing" ? 0 : await withdrawUnseen(context, child);
  const end = closed
    ? endOf(task, child, closed)
    : { taskId: task.id, name: task.name, status: "cancelled" as const, text: "", reason: "deleted" };
  const notice = task.isCut ? undefined : await noticeOf(task, end, { rule, unseen });
  return endTask(context, ref, task.id, endingOf(end, closed?.turn), (view, newest) => [
    ...mirrorsOf(view, child).map(({ id }) => interactionExpired(context, id, "not needed")),
    // Settle-3.
    ...(notice && !newest.isCut ? [noticed(context, newest, notice)] : []),
  ]);
}

/** The input that begins a turn about the end of a task, asked as the turn was that began the task. */
function noticed(context: Context, { id: taskId, agentId, by, request }: OpenTask, message: QueuedMessage): Draft {
  const { output: _output, missing: _missing, ...asked } = request ?? {};
  return inputQueued(context, `${taskId}.in`, {
    messages: [message],
    when: "idle",
    source: { kind: "task", taskId },
    ...(agentId !== undefined && { agentId }),
    ...(by !== undefined && { by }),
    ...(Object.keys(asked).length > 0 && { request: asked as TurnRequest }),
  });
}

/** Withdraws what was said to the child and came too late; how many messages. */
async function withdrawUnseen(context: Context, child: BranchRef): Promise<number> {
  const { sessionId, branchId } = child;
  const ref = { sessionId, branchId };
  const view = await viewOf(context, ref);
  let unseen = 0;
  for (const { id } of view?.queue ?? []) {
    const withdrawn = await withdrawInput(context, ref, id, { reason: "the task has ended" }).catch(() => undefined);
    if (withdrawn) unseen++;
  }
  return unseen;
}

/** A child that asks. */
interface Asking {
  readonly ref: BranchRef;
  readonly view: BranchView;
}

/** Settle-2. */
async function mirrorQuestions(context: Context, ref: BranchRef, { id, child }: OpenTask): Promise<void> {
  const { sessionId, branchId, turnId } = child!;
  const asking = await viewOf(context, { sessionId, branchId });
  const isOpen = asking?.open?.id === turnId;
  const questions = isOpen ? asking.interactions.filter((each) => each.turnId === turnId) : [];
  await onNewest(context, ref, (view) => {
    if (!view.tasks.some((task) => task.id === id)) return [];
    const mirrors = mirrorsOf(view, child!);
    const isMirrored = (question: Interaction) => mirrors.some((each) => mirrorOf(each)?.interactionId === question.id);
    const isAsked = (mirror: Interaction) => questions.some((each) => each.id === mirrorOf(mirror)?.interactionId);
    const stale = mirrors.filter((each) => !isAsked(each));
    const fresh = questions.filter((each) => !isMirrored(each));
    return [
      ...stale.map((each) => interactionExpired(context, each.id, "not needed")),
      ...fresh.map((each) => mirrored(context, each, { ref: { sessionId, branchId }, view: asking! })),
    ];
  });
}

/** The mirrors of a child's questions that no call of the branch waits for. */
function mirrorsOf({ interactions }: BranchView, child: BranchRef): readonly Interaction[] {
  return interactions.filter((each) => {
    const of = each.turnId === undefined ? mirrorOf(each) : undefined;
    return of?.sessionId === child.sessionId && of.branchId === child.branchId;
  });
}

function mirrored(
  context: Context,
  { id: interactionId, kind, request, expiresAt }: Interaction,
  child: Asking,
): Draft {
  const { ref, view } = child;
  const { chain = [], depth = 1 } = parentOf(view.open?.metadata) ?? {};
  const agent = String(view.header.metadata.subAgentName ?? "agent");
  const of = { agent, chain: [...chain, agent], depth, ...ref, interactionId };
  const key = `child:${interactionId}`;
  return interactionOpened(context, undefined, {
    kind,
    key,
    request: { ...(request as JsonObject), child: of },
    expiresAt,
  });
}
