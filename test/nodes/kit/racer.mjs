// A process that gives commands to an agent when it is told to: node racer.mjs URL, with an IPC channel.
// { id, command: [method, ...args] } is answered by { id, outcome }, an outcome being { ok: true } or { code }.

import { createAgent } from "bough";
import { perform, playOf } from "./race.mjs";

const agent = createAgent({ ...playOf(), store: process.argv[2] });
process.on("message", async ({ id, command }) => process.send({ id, outcome: await perform(agent, command) }));
process.on("disconnect", () => process.exit(0));
process.send({ ready: true });
