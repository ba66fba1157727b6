// The conversations that are measured: turns of two messages, and turns of four with a tool call.

import { prose, seeded } from "./words.mjs";

const textLength = 500;

/** Endless turns of two messages: `{ user, assistant }`. */
function* shortTurns(seed = 1) {
  const random = seeded(seed);
  for (;;) yield { user: prose(random, textLength), assistant: prose(random, textLength) };
}

/** Endless turns of four messages: the user, the call, its result, the answer. */
export function* toolTurns(seed = 1) {
  const random = seeded(seed);
  for (let i = 1; ; i++) {
    const call = { toolCallId: `call_${seed}_${i}`, toolName: random() < 0.5 ? "search" : "lookup" };
    const input = { query: prose(random, 60), limit: Math.ceil(random() * 20) };
    yield {
      user: prose(random, textLength),
      call: { ...call, input },
      thought: prose(random, 80),
      output: { type: "text", value: prose(random, textLength) },
      assistant: prose(random, textLength),
    };
  }
}

/** Turns out of a fixed number of them, again and again: for timing, where making text would only take time. */
export function pooledTurns(size = 1024, seed = 1) {
  const source = shortTurns(seed);
  const pool = Array.from({ length: size }, () => source.next().value);
  let next = 0;
  return () => pool[next++ % size];
}

/** One turn of two messages as an agent writes it: the input before the model is called, the rest after. */
export async function writeShortTurn(sessions, scope, { user, assistant }) {
  const turn = await sessions.beginTurn(scope, user);
  await turn.commit({ messages: [{ role: "assistant", content: assistant }] });
}

/** The same turn in one append. */
export async function appendShortTurn(sessions, scope, { user, assistant }) {
  await sessions.appendTurn(scope, [
    { role: "user", content: user },
    { role: "assistant", content: assistant },
  ]);
}

/** One turn of four messages as an agent writes it: four appends. */
export async function writeToolTurn(sessions, scope, { user, thought, call, output, assistant }) {
  const turn = await sessions.beginTurn(scope, user);
  const { toolCallId, toolName } = call;
  const content = [
    { type: "text", text: thought },
    { type: "tool-call", ...call },
  ];
  await turn.add({ role: "assistant", content });
  await turn.toolReturned({ callId: toolCallId, toolName, output });
  await turn.commit({
    messages: [{ role: "assistant", content: assistant }],
    usage: { inputTokens: 1200, outputTokens: 160 },
    iterations: 2,
  });
}
