// Driving an agent through a play, from wherever an earlier process left it: takes up the open turn, or begins the next.

import { createAgent } from "bough";
import { inputOf, modelOf, toolsOf } from "./play.mjs";

const sessionId = "s";
export const ref = { sessionId, branchId: "main" };

/**
 * Plays to the end on an open store, which stays open. `onAcked(keys)` is told which calls have their results when it
 * begins; `answer(interaction)` is asked for every answer. `recovers` takes an open turn up with recover() instead of run().
 */
export async function drive({ store, play, effects, life, answer, onAcked, recovers = false }) {
  const agent = createAgent({ model: modelOf(play), tools: toolsOf({ effects, life }), store });
  onAcked(await ackedCalls(store));
  for (;;) {
    const branch = await agent.loadBranch(sessionId);
    const turn = branch.turns.length;
    if (branch.uncommittedTurn) await takeUp(agent, { answer, recovers });
    else if (turn < play.length) await follow(agent.run(inputOf(turn), ref), answer);
    else return;
  }
}

/** Makes what every life finds: the session. */
export async function prepare(store) {
  await createAgent({ model: modelOf([]), store }).createSession(sessionId);
}

async function ackedCalls(store) {
  const keys = [];
  for (const { branchId } of await store.listBranches(sessionId)) {
    const events = await store.read({ sessionId, branchId }, { limit: 100_000 });
    const facts = events.map(({ data }) => JSON.parse(data));
    const parts = facts.flatMap(({ content }) => (Array.isArray(content) ? content : []));
    const returned = new Set(facts.flatMap((fact) => (fact.type === "tool.returned" ? fact.callId : [])));
    for (const { type, toolCallId, input } of parts) {
      if (type === "tool-call" && returned.has(toolCallId)) keys.push(input.key);
    }
  }
  return keys;
}

/** What waits for an answer gets it first, since a run that takes a turn up doesn't show questions again. */
async function takeUp(agent, { answer, recovers }) {
  const isMain = ({ branchId }) => branchId === ref.branchId;
  const left = (await agent.recover({ resume: false })).find(isMain);
  for (const interaction of left.waitingFor) {
    await agent.answer(ref, interaction.id, await answer(interaction));
  }
  const recovered = recovers ? (await agent.recover()).find(isMain) : { run: agent.run(undefined, ref) };
  await follow(recovered.run, answer);
}

/** Reads along and answers; the run must complete. */
async function follow(run, answer) {
  for await (const event of run) {
    if (event.type === "interaction.opened") {
      answer(event).then((given) => run.respond(event.id, given));
    }
  }
  const { status, error } = await run.result;
  if (status !== "completed") throw error ?? new Error(`The run is ${status}.`);
}
