// What the agents of a cluster do. An input says which tools are to be called, the model's reply depends on the prompt
// alone, and a tool's result on its call alone: so a turn has one outcome, however often it is taken over.

import { scriptedModel } from "bough/scripted";

/** An input: batches of calls, each with the time it takes. */
export function randomInput(random, name) {
  const call = () => ({ tool: random.pick(["look", "note"]), ms: random.chance(0.2) ? 0 : random.int(120) });
  const batches = Array.from({ length: random.int(4) }, () => Array.from({ length: 1 + random.int(3) }, call));
  return JSON.stringify({ name, batches });
}

/** What the answer to an input says. */
export function answerTo(input) {
  return `Done with ${JSON.parse(input).name}.`;
}

/** The results of an input's calls, in order. */
export function resultsOf(input) {
  const { name, batches } = JSON.parse(input);
  return batches.flatMap((batch, b) => batch.map((_, c) => resultOf(keyOf(name, b, c))));
}

const keyOf = (name, batch, call) => `${name}.${batch}.${call}`;
const resultOf = (key) => `did ${key}`;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export function modelOf() {
  return scriptedModel(
    (prompt) => {
      const asked = prompt.findLastIndex(({ role }) => role === "user");
      const input = prompt[asked].content[0].text;
      const { name, batches } = JSON.parse(input);
      const iteration = prompt.slice(asked).filter(({ role }) => role === "assistant").length;
      const batch = batches[iteration];
      if (!batch) return answerTo(input);
      return { calls: batch.map(({ tool, ms }, c) => ({ name: tool, input: { key: keyOf(name, iteration, c), ms } })) };
    },
    { delayMs: 2, sleep },
  );
}

/** The tools; every execution is noted when it begins. */
export function toolsOf(note) {
  const input = { type: "object", properties: { key: { type: "string" }, ms: { type: "number" } } };
  const execute = async ({ key, ms }, { sessionId, runId, callId }) => {
    note({ executed: callId, key, sessionId, runId });
    if (ms > 0) await sleep(ms);
    return resultOf(key);
  };
  return { look: { input, execute, effect: "read" }, note: { input, execute } };
}
