// What people and models see of the logs: every branch folds, listings agree with the folds, transcripts are legal, and
// what a crash left open can be taken up and finished at once.

import { isDeepStrictEqual } from "node:util";
import { callsOf, codec } from "bough/events";
import { project, transcript } from "bough/projection";

export async function checkProjections(sessions, snapshot, { finish, report }) {
  for (const { record, branches } of snapshot.sessions) {
    const all = await sessions.listBranches(record.id, { visibility: "all" });
    const listed = new Map(all.map((info) => [info.id, info]));
    for (const branch of branches) {
      const { branchId } = branch.record;
      const say = (kind, text) => report(kind, `${record.id}/${branchId}: ${text}`);
      const view = foldOf(branch, say);
      if (!view) continue;
      checkListing(branch.record, listed.get(branchId), view, say);
      checkTranscript(transcript(view), say);
      await checkLoaded(sessions, branch.record, view, say);
      if (view.open && finish(branch.record)) await finishTurn(sessions, branch.record, say);
    }
  }
}

function foldOf({ events }, say) {
  try {
    return project(events.map((event) => codec.decode(event)));
  } catch (error) {
    say("broken", `the log does not fold: ${error.message}`);
  }
}

/** The row that listings show is what the log says. */
function checkListing(record, info, view, say) {
  const meant = rowOf(view);
  const found = { tags: [], metadata: {}, ...record.header };
  for (const [key, value] of Object.entries(meant)) {
    if (isDeepStrictEqual(found[key], value)) continue;
    say("wrong", `the listing's ${key} is ${JSON.stringify(found[key])}, the log's ${JSON.stringify(value)}`);
  }
  if (info?.messageCount !== view.messages.length) {
    say("wrong", `the listing counts ${info?.messageCount} messages, the log ${view.messages.length}`);
  }
  if (info?.seq !== view.seq) say("wrong", `the listing is at ${info?.seq}, the log at ${view.seq}`);
}

function rowOf({ header, messages, open, staged, fork }) {
  const { name, description, tags = [], metadata } = header;
  const shared = fork && { messages: fork.messages, ...(fork.messageId && { messageId: fork.messageId }) };
  const turn = open?.id ?? staged.at(-1)?.id;
  return { name, description, tags, metadata, messages: messages.length, turn, fork: shared ?? undefined };
}

/** Every call has exactly one result, right behind it, in the order of the calls; every message is there once. */
function checkTranscript(messages, say) {
  const ids = new Set();
  for (const [i, message] of messages.entries()) {
    if (ids.has(message.id)) say("wrong", `message ${message.id} is in the transcript twice`);
    ids.add(message.id);
    const calls = callsOf(message).map((call) => call.toolCallId);
    const next = messages[i + 1];
    const results = next?.role === "tool" ? next.content.map((part) => part.toolCallId) : [];
    if (message.role === "assistant" && !isDeepStrictEqual(results, calls)) {
      say("wrong", `message ${message.id} calls ${calls.join(", ")} and gets results of ${results.join(", ")}`);
    }
    if (message.role === "tool" && callsOf(messages[i - 1] ?? {}).length === 0) {
      say("wrong", `message ${message.id} answers a call that nobody made`);
    }
  }
}

/** A load, which goes through stored segments, shows the same as folding everything. */
async function checkLoaded(sessions, { sessionId, branchId }, view, say) {
  const loaded = await sessions.loadBranch({ sessionId, branchId });
  if (!isDeepStrictEqual(loaded.messages, view.messages)) say("wrong", "loaded, it has other messages than its log");
  if (!isDeepStrictEqual(loaded.state, view.state)) say("wrong", "loaded, it has another state than its log");
  if (loaded.stagedTurns.length > 0 && !view.open) say("wrong", "loaded, it still has turns that nobody saved");
}

async function finishTurn(sessions, { sessionId, branchId }, say) {
  const ref = { sessionId, branchId };
  try {
    const turn = await sessions.resumeTurn(ref);
    await turn.add({ role: "assistant", content: "Where were we?" });
    await turn.commit();
    const loaded = await sessions.loadBranch({ sessionId, branchId });
    if (loaded.uncommittedTurn) say("wrong", "its turn is still open after it was resumed and committed");
    checkTranscript(loaded.transcript(), say);
  } catch (error) {
    say("broken", `the turn that was left open can't be finished: ${error.code ?? error.name}: ${error.message}`);
  }
}
