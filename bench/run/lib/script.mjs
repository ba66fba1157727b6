// What every system is asked and what its model answers: the same texts, the same tool, the same deltas.

import { prose, seeded } from "../../lib/words.mjs";

const textLength = 500;
const random = seeded(3);
const pool = Array.from({ length: 512 }, () => prose(random, textLength));
let next = 0;

export const instructions = "You are the assistant of a library. You answer in plain text.";

/** The text of the next message, out of a fixed number of them: making text would only take time. */
export function nextText() {
  return pool[next++ % pool.length];
}

/** A conversation of so many messages: the user and the assistant take turns. */
export function historyOf(messages) {
  return Array.from({ length: messages }, (_, i) => ({ role: i % 2 === 0 ? "user" : "assistant", text: nextText() }));
}

const reply = prose(random, textLength);

/** What the model answers, in so many deltas: one of 500 characters, or many of the size of a token. */
export function deltasOf(count) {
  if (count === 1) return [reply];
  const size = 5;
  const text = prose(random, count * size);
  return Array.from({ length: count }, (_, i) => text.slice(i * size, (i + 1) * size));
}

export const tool = {
  name: "lookup",
  description: "Looks up a book in the catalogue.",
  input: { query: "harbour bridges of the nineteenth century", limit: 5 },
  output: prose(random, textLength),
};

let calls = 0;

/** Ids of calls and of what models number: different every time, as they are. */
export function nextId(prefix) {
  return `${prefix}_${(++calls).toString(36).padStart(8, "0")}`;
}

export const tokens = { input: 1200, output: 120 };
