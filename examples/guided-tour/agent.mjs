// The agent of the tour, the same in both of its processes: two tools, and the replies of the scripted model that is used
// without a key.

import { appendFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { createAgent, defineTool } from "bough";
import { z } from "zod";
import { modelFor } from "../model.mjs";

const things = z.object({ what: z.enum(["hotel", "train", "table"]) });

/** An agent on a store. Every execution of a tool appends a line to the ledger, so a second execution would be visible. */
export function openAgent({ store, ledger, isDoomed = false }) {
  const book = defineTool({
    description: "Books a hotel, a train, or a table in a restaurant.",
    input: things,
    async execute({ what }) {
      // The process that gets killed never finishes booking the table.
      await wait(isDoomed && what === "table" ? 60_000 : 20);
      appendFileSync(ledger, `${what}\n`);
      return { booked: what };
    },
  });
  const cancel = defineTool({
    description: "Cancels a booking.",
    input: things,
    permission: true,
    effect: "once",
    execute: ({ what }) => ({ cancelled: what }),
  });
  return createAgent({
    id: "travel-agent",
    model: modelFor(script),
    instructions:
      "You are a travel agent. Answer in one or two plain sentences and never ask back. Use your tools only when you are told to book or to cancel, and then for all things at once.",
    tools: { book, cancel },
    store,
  });
}

const lines = [
  [/trip/i, "Three days in Lisbon: Alfama on foot, Belém by tram, a day at the sea in Cascais."],
  [/\brain/i, "Then the Gulbenkian museum and the tile museum first, and the sea when it clears."],
  [/cheap/i, "Take the night bus, stay in a hostel in Graça, and eat at the market: about 70 euros a day."],
  [/\bbook\b/i, { calls: ["hotel", "train", "table"].map((what) => ({ name: "book", input: { what } })) }],
  [/cancel/i, { calls: [{ name: "cancel", input: { what: "table" } }] }],
  [/instead/i, "The bus leaves at 7:40 and takes an hour longer, but it costs half."],
];

function script(prompt) {
  const last = prompt.at(-1);
  if (last.role === "user") return lines.find(([pattern]) => pattern.test(last.content.at(-1).text))[1];
  const { cancelled } = last.content[0].output.value;
  return cancelled ? `The ${cancelled} is cancelled.` : "Hotel, train and table are booked.";
}
