// What must be true of a world after every life in it.

import { callsOf, type Fact, type Message } from "../../../src/events/index.ts";
import { type BranchView, emptyView, fold } from "../../../src/projection/index.ts";
import { transcript } from "../../../src/projection/transcript.ts";
import { copyView } from "../../../src/projection/view.ts";
import { checkLogs } from "../../../src/testing/index.ts";
import { replay } from "../../sessions/kit.ts";
import type { Lived } from "./life.ts";
import { ref, type World } from "./world.ts";

export async function checkLife(world: World, lived: Lived): Promise<string[]> {
  const view = await replay(world.store, ref);
  return [
    ...world.problems,
    ...(await checkLogs(world.store)),
    ...checkBatches(world.facts),
    ...checkPositions(world.facts),
    ...checkStream(world, lived),
    ...(lived.result ? checkStatus(lived, view) : []),
    ...(lived.result ? await checkFree(world) : []),
  ];
}

/** Calls are all answered before the model speaks again, and no result comes without its call. */
function checkBatches(facts: readonly Fact[]): string[] {
  const problems: string[] = [];
  let left = new Set<string>();
  for (const fact of facts) {
    if (fact.type === "message.added" && fact.role === "assistant") {
      if (left.size > 0 && !fact.partial) problems.push(`fact ${fact.seq} comes before the results of ${[...left]}`);
      left = new Set(callsOf(fact as unknown as Message).map(({ toolCallId }) => toolCallId));
    } else if (fact.type === "tool.returned") {
      if (!left.delete(fact.callId)) problems.push(`fact ${fact.seq} answers ${fact.callId}, which does not wait`);
    } else if (fact.type === "turn.committed" && left.size > 0) {
      problems.push(`the turn is committed without the results of ${[...left]}`);
    } else if (fact.type === "turn.started") left = new Set();
  }
  return problems;
}

/** Wherever the log is cut, what a model would see is legal. */
function checkPositions(facts: readonly Fact[]): string[] {
  const problems: string[] = [];
  const view = emptyView();
  view.seq = (facts[0]?.seq ?? 1) - 1;
  for (const fact of facts) {
    fold(view, fact);
    const messages = transcript(copyView(view));
    for (const [at, message] of messages.entries()) {
      const asked = callsOf(message).map(({ toolCallId }) => toolCallId);
      if (message.role === "tool" && callsOf(messages[at - 1]!).length === 0)
        problems.push(`results without calls at ${fact.seq}`);
      if (asked.length === 0) continue;
      const results = messages[at + 1];
      const given = results?.role === "tool" ? (results.content as unknown as { toolCallId: string }[]) : [];
      const ids = given.map(({ toolCallId }) => toolCallId);
      if (String(ids) !== String(asked)) problems.push(`at ${fact.seq}, calls ${asked} have the results ${ids}`);
    }
  }
  return problems;
}

/** What a listener sees: the log from where the run began, without gaps, and one end after which nothing comes. */
function checkStream(world: World, { life, plan, events, result }: Lived): string[] {
  if (!plan.listens) return [];
  const problems: string[] = [];
  const kept = events.filter(({ seq }) => seq !== undefined);
  for (const [i, { seq, type }] of kept.entries()) {
    if (i > 0 && seq !== kept[i - 1]!.seq! + 1) problems.push(`after ${kept[i - 1]!.seq} comes ${seq} (${type})`);
  }
  if (!result) return problems;
  const last = kept.at(-1)?.seq ?? 0;
  if (last < life.lastSeq) problems.push(`the listener saw ${last}, the run wrote ${life.lastSeq}`);
  const opening = world.facts.find((fact) => "runId" in fact && fact.runId === result.runId);
  if (!kept.some(({ seq }) => seq === opening?.seq)) problems.push("the listener did not see the run begin");
  const ends = events.filter(({ type }) => type === "run-end");
  if (ends.length !== 1 || events.at(-1) !== ends[0]) {
    problems.push(`run-end is not the one last event: ${events.slice(-3).map(({ type }) => type)}`);
  }
  const { status } = ends[0] as { status?: string };
  if (status !== result.status) problems.push(`run-end says ${status}, the result ${result.status}`);
  return problems;
}

function checkStatus({ result }: Lived, view: BranchView): string[] {
  const { status, turnId, text, iterations, messages, error } = result!;
  const record = view.turns.find(({ id }) => id === turnId);
  const expected = { completed: "committed", interrupted: "interrupted", failed: "failed", parked: undefined }[status];
  if (record?.status !== expected) return [`the run is ${status}, the turn ${record?.status}`];
  const own = view.messages.filter((message) => message.turnId === turnId);
  const problems: string[] = [];
  if (status === "parked" && view.open?.id !== turnId) problems.push("a parked turn is not open");
  if (status === "failed" && error === undefined) problems.push("a failed run has no error");
  if (status === "parked") return problems;
  const ids = (of: readonly Message[]) => String(of.map(({ id }) => id));
  if (ids(messages) !== ids(own)) problems.push(`the result has messages ${ids(messages)}, the turn ${ids(own)}`);
  if (status !== "completed") return problems;
  const said = own.filter(({ role }) => role === "assistant").length;
  if (iterations !== said || record?.iterations !== said) {
    problems.push(`${said} model calls are counted as ${iterations} and ${record?.iterations}`);
  }
  if (text !== "The end." && record?.reason === "stop") problems.push(`the answer is "${text}"`);
  return problems;
}

/** A run that has ended holds nothing; the lease of a claim it hands over is over. */
async function checkFree(world: World): Promise<string[]> {
  const now = world.clock.now();
  const claims = (await world.store.listRuns()).filter(({ expiresAt }) => expiresAt > now);
  return claims.length > 0 ? [`the branch is still held: ${JSON.stringify(claims)}`] : [];
}
