// What an agent is made to do: a play is turns, each of them batches of calls and an answer. The model's reply depends on
// the prompt alone, and a tool's result on its call alone, so a play has one outcome, however often it is cut off.

import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { createAgent, subagent } from "bough";
import { scriptedModel } from "bough/scripted";

/**
 * Tools in parallel, of every effect, with and without a permission, with one that fails; two that only read; and a child that
 * asks.
 */
export const fixedPlay = [
  {
    batches: [
      [{ tool: "look" }, { tool: "pay" }, { tool: "note", ms: 1 }],
      [{ tool: "send" }, { tool: "book", ms: 1 }, { tool: "fail" }],
      [{ tool: "look" }, { tool: "look", ms: 1 }],
      [{ tool: "delegate" }, { tool: "note" }],
    ],
    answer: "All of it is done.",
  },
];

/** A few turns of anything. */
export function randomPlay(random) {
  const names = ["look", "look", "note", "note", "pay", "book", "send", "guard", "fail", "delegate"];
  return Array.from({ length: 1 + random.int(3) }, (_, turn) => {
    // One call in a turn may fail: a run that is cut off counts errors anew, and a row of them ends a turn.
    let mayFail = true;
    const call = () => {
      const tool = random.pick(names);
      if (tool === "fail" && !mayFail) return { tool: "look", ms: 0 };
      if (tool === "fail") mayFail = false;
      return { tool, ms: random.chance(0.3) ? 0 : random.int(12) };
    };
    const batches = Array.from({ length: random.int(5) }, () => Array.from({ length: 1 + random.int(4) }, call));
    return { batches, answer: `Turn ${turn} is done.` };
  });
}

/** What begins a turn of the play. */
export function inputOf(turn) {
  return `turn ${turn}`;
}

export function modelOf(play) {
  return scriptedModel((prompt) => {
    const asked = prompt.findLastIndex(({ role }) => role === "user");
    const turn = Number(prompt[asked].content[0].text.split(" ")[1]);
    const { batches, answer } = play[turn];
    const iteration = prompt.slice(asked).filter(({ role }) => role === "assistant").length;
    const batch = batches[iteration];
    if (!batch) return answer;
    const calls = batch.map(({ tool, ms = 0 }, i) => ({ name: tool, input: { key: `${turn}.${iteration}.${i}`, ms } }));
    return { text: `Step ${iteration}.`, calls };
  });
}

/** The child behind a call of `delegate`: two effects of its own, one of which has to be allowed, then its answer. */
function childOf(tools) {
  const model = scriptedModel((prompt) => {
    const asked = prompt.findLastIndex(({ role }) => role === "user");
    const { key } = JSON.parse(prompt[asked].content[0].text);
    if (prompt.slice(asked).some(({ role }) => role === "assistant")) return resultOf({ key });
    return {
      calls: [
        { name: "note", input: { key: `${key}.a`, ms: 1 } },
        { name: "send", input: { key: `${key}.b`, ms: 0 } },
      ],
    };
  });
  return createAgent({ name: "child", model, tools: { note: tools.note, send: tools.send } });
}

/** The keys of the effects that a play has. */
export function effectsOf(play) {
  const placed = play.flatMap(({ batches }, turn) =>
    batches.flatMap((batch, i) => batch.map(({ tool }, n) => ({ tool, key: `${turn}.${i}.${n}` }))),
  );
  return placed.flatMap(({ tool, key }) => (tool === "delegate" ? [`${key}.a`, `${key}.b`] : [key]));
}

/** How many children a play has. */
export function childrenOf(play) {
  return play.flatMap(({ batches }) => batches.flat()).filter(({ tool }) => tool === "delegate").length;
}

/** What a call gives back. */
function resultOf({ key }) {
  return `done ${key}`;
}

/** What a person says who knows that a call has run. */
export function knownOutput({ input }) {
  return resultOf(input);
}

/** The tools; each effect is a line in the file, written by the process (`life`) that has it. */
export function toolsOf({ effects, life }) {
  const input = { type: "object", properties: { key: { type: "string" }, ms: { type: "number" } } };
  const execute = async (given, { callId, toolName }) => {
    if (given.ms > 0) await new Promise((resolve) => setTimeout(resolve, given.ms));
    appendLine(effects, { life, callId, tool: toolName, key: given.key });
    return resultOf(given);
  };
  const reconcile = (given, { callId }) => {
    const hasRun = readLines(effects).some((effect) => effect.callId === callId);
    return hasRun ? { type: "text", value: resultOf(given) } : "not-executed";
  };
  const fail = async (given, context) => {
    await execute(given, context);
    throw new Error(`No ${given.key}.`);
  };
  const tools = {
    look: { input, execute, effect: "read" },
    note: { input, execute },
    fail: { input, execute: fail },
    pay: { input, execute, effect: "once" },
    book: { input, execute, effect: "once", reconcile },
    send: { input, execute, effect: "once", permission: true },
    guard: { input, execute, permission: true },
  };
  const delegate = subagent(childOf(tools), {
    description: "Delegates.",
    input: { jsonSchema: input },
    permission: false,
  });
  return { ...tools, delegate };
}

function appendLine(path, line) {
  const file = openSync(path, "a");
  writeSync(file, `${JSON.stringify(line)}\n`);
  closeSync(file);
}

/** The effects so far; none when there is no file yet. */
export function readLines(path) {
  let text = "";
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (error.code !== "ENOENT") throw error;
  }
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}
