// The state of a branch as a response: as many of its newest messages as fit, and where to read the rest.

import { branchInfoBody, closedBefore, type Moment, progressOf } from "../sessions/bodies.ts";
import { type CheckpointBody, openTaskBody, queuedInputBody } from "../wire/index.ts";
import { AnswerRoom, jsonAnswer, newestMessages } from "./pages.ts";

export async function stateAnswer(
  { branch, active }: Moment,
  last: number,
  { answerBytes }: { answerBytes: number },
  { checkpoint, upTo }: { checkpoint?: CheckpointBody; upTo?: string } = {},
): Promise<Response> {
  const { seq, uncommittedTurn: turn, interactions, queue, tasks } = branch;
  const messages = closedBefore(branch, upTo);
  const room = new AnswerRoom(answerBytes);
  const shown = await newestMessages(room, { messages, open: turn?.messages }, last);
  const head = {
    checkpoint,
    seq,
    branch: branchInfoBody(branch),
    interactions,
    queue: queue.map(queuedInputBody),
    tasks: tasks.map(openTaskBody),
    activeRun: active,
    before: shown.before,
    firstIndex: shown.firstIndex,
  };
  const more = turn ? JSON.stringify(progressOf(turn)).slice(1, -1) : "";
  const rest = more === "" ? "" : `,${more}`;
  const openTurn =
    turn && `{"id":${JSON.stringify(turn.id)},"startedAt":${turn.startedAt},"messages":[${shown.open}]${rest}}`;
  return jsonAnswer({ messages: shown.closed, ...(openTurn !== undefined && { openTurn }) }, head);
}
