// The history of a cluster: what its nodes noted, compared with the logs that are there at the end.
//   C1. What was acknowledged, or shown to a subscriber, is in the log where it was said to be.
//   C2. Logs have no gaps and read legally (checkLogs).
//   C3. Epochs never go back along a log: after the first fact of a new run there is none of an old one.
//   C4. A run that takes a turn up does not execute a call again whose result is in the log before it; no run executes a
//       call twice.
//   C5. Every turn has come to the end it would have come to in peace, unless somebody interrupted or superseded it.
//   C6. Nothing is held any more.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { checkLogs } from "bough/testing";
import { answerTo, resultsOf } from "./play.mjs";

export async function checkHistory(store, sessionIds, notes) {
  const problems = await checkLogs(store);
  for (const sessionId of sessionIds) {
    const log = await factsOf(store, sessionId);
    const own = notes.filter((note) => note.sessionId === sessionId);
    const found = [
      ...checkAcknowledged(log, own),
      ...checkEpochs(log, own),
      ...checkExecutions(log, own),
      ...checkTurns(log, own),
    ];
    problems.push(...found.map((problem) => `${sessionId}: ${problem}`));
  }
  const now = Date.now();
  const held = (await store.listRuns()).filter(({ sessionId, expiresAt }) => {
    return sessionIds.includes(sessionId) && expiresAt > now;
  });
  return [...problems, ...held.map((claim) => `still held: ${JSON.stringify(claim)}`)];
}

async function factsOf(store, sessionId) {
  const events = await store.read({ sessionId, branchId: "main" }, { limit: 1_000_000 });
  return events.map(({ seq, id, data }) => ({ ...JSON.parse(data), seq, id }));
}

/** C1 */
function checkAcknowledged(log, notes) {
  const said = notes.flatMap(({ acked, first, shown, seq }) => {
    if (acked) return acked.map((id, i) => ({ id, seq: first + i }));
    return shown ? [{ id: shown, seq }] : [];
  });
  const lost = said.filter(({ id, seq }) => log[seq - 1]?.id !== id);
  return lost.map(({ id, seq }) => `fact ${id} was acknowledged at ${seq} and is not there`);
}

/** C3 */
function checkEpochs(log, notes) {
  const epochs = new Map();
  for (const { asked, acked, epoch } of notes) {
    if (epoch !== undefined) for (const id of asked ?? acked ?? []) epochs.set(id, epoch);
  }
  const problems = [];
  let newest = 0;
  for (const { id, seq } of log) {
    const epoch = epochs.get(id) ?? newest;
    if (epoch < newest) problems.push(`fact ${seq} has epoch ${epoch} after one with ${newest}`);
    newest = Math.max(newest, epoch);
  }
  return problems;
}

/** C4 */
function checkExecutions(log, notes) {
  const begun = new Map();
  const returned = new Map();
  for (const { type, seq, runId, callId } of log) {
    if (type === "turn.started" || type === "turn.resumed") begun.set(runId, seq);
    if (type === "tool.returned" && !returned.has(callId)) returned.set(callId, seq);
  }
  const problems = [];
  const seen = new Set();
  for (const { executed, runId, key } of notes) {
    if (executed === undefined) continue;
    const name = `${runId} ${key}`;
    if (seen.has(name)) problems.push(`run ${runId} executed ${key} twice`);
    seen.add(name);
    if (begun.get(runId) > returned.get(executed)) problems.push(`run ${runId} executed ${key} again`);
  }
  return problems;
}

/** C5 */
function checkTurns(log, notes) {
  const interrupted = new Set(notes.flatMap((note) => note.interrupted ?? []));
  return turnsOf(log).flatMap(({ id, runIds, input, results, text, end }) => {
    if (!end) return [`turn ${id} has no end`];
    if (end.type === "turn.committed") {
      const isRight = text === answerTo(input) && isSameSet(results, resultsOf(input));
      return isRight ? [] : [`turn ${id} came to another end: ${JSON.stringify({ input, results, text })}`];
    }
    const wasMeant = end.reason === "superseded" || runIds.some((runId) => interrupted.has(runId));
    const isRequested = end.reason === "told to";
    return wasMeant || isRequested ? [] : [`turn ${id} ended: ${JSON.stringify(end)}`];
  });
}

function isSameSet(one, other) {
  return JSON.stringify([...one].sort()) === JSON.stringify([...other].sort());
}

function turnsOf(log) {
  const turns = [];
  for (const fact of log) {
    const turn = turns.at(-1);
    if (fact.type === "turn.started") turns.push({ id: fact.id, runIds: [fact.runId], results: [] });
    if (fact.type === "turn.resumed") turn.runIds.push(fact.runId);
    if (fact.type === "message.added" && fact.role === "user") turn.input = fact.content[0].text;
    if (fact.type === "message.added" && fact.role === "assistant") turn.text = fact.content[0].text;
    if (fact.type === "tool.returned") turn.results.push(fact.output.value);
    if (fact.type === "turn.committed" || fact.type === "turn.ended") turn.end = fact;
  }
  return turns;
}

/** What all nodes noted. A line that was being written when its node was killed is none. */
export function readNotes(folder) {
  const files = readdirSync(folder).filter((name) => name.startsWith("journal-"));
  const texts = files.map((name) => readFileSync(join(folder, name), "utf8"));
  return texts.flatMap((text) => text.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line)])));
}
