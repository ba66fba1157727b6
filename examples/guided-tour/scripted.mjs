// A stand-in for a model and its tools: the same answers every time, no key, no network. It exists for this tour only.

import { appendFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";

const answers = [
  [/trip/i, "Three days in Lisbon: Alfama on foot, Belém by tram, a day at the sea in Cascais."],
  [/\brain/i, "Then the Gulbenkian museum and the tile museum first, and the sea when it clears."],
  [/cheap/i, "Take the night bus, stay in a hostel in Graça, and eat at the market: about 70 euros a day."],
  [/train/i, "The 8:15 from Porto; first class is 9 euros more, and the coast is on your right."],
];

/** What the stand-in answers to a text. */
export function answerTo(text) {
  return answers.find(([pattern]) => pattern.test(text))?.[1] ?? "I am a scripted stand-in; ask me about a trip.";
}

/** The answer, word by word, as a model would stream it. */
export async function* stream(text) {
  for (const word of text.split(/(?<= )/)) {
    await wait(8);
    yield word;
  }
}

/** The three calls that the stand-in asks for at once. */
export const bookings = [
  { type: "tool-call", toolCallId: "call-hotel", toolName: "book", input: { what: "hotel" } },
  { type: "tool-call", toolCallId: "call-train", toolName: "book", input: { what: "train" } },
  { type: "tool-call", toolCallId: "call-table", toolName: "book", input: { what: "table for two" } },
];

/** Books something; every real execution leaves a line in the ledger, so that running twice would show. */
export async function book({ toolCallId, input }, ledger, { slow = false } = {}) {
  await wait(slow ? 60_000 : 30);
  appendFileSync(ledger, `${toolCallId}\n`);
  return { type: "json", value: { booked: input.what, reference: `R-${toolCallId.slice(5)}` } };
}
