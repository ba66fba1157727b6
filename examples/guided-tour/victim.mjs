// The process that gets killed: it begins a turn with three tools in parallel, and the third never finishes.

import { openSessions } from "bough";
import { book, bookings } from "./scripted.mjs";

const [store, ledger] = process.argv.slice(2);
const sessions = await openSessions(store);
const turn = await sessions.beginTurn(
  { sessionId: "trip", branchId: "main" },
  "Book the hotel, the train and a table.",
);
await turn.add({ role: "assistant", content: [{ type: "text", text: "Booking all three at once." }, ...bookings] });
await Promise.all(
  bookings.map(async (call) => {
    const output = await book(call, ledger, { slow: call.toolCallId === "call-table" });
    await turn.toolReturned({ callId: call.toolCallId, toolName: call.toolName, output });
    // Acknowledged means durable: from here on the result can't be lost.
    process.stdout.write(`${call.toolCallId}\n`);
  }),
);
