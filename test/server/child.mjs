// A server on a SQLite file, to be killed: prints its address, and answers slowly enough to be caught in the middle.

import { scriptedModel } from "../../dist/scripted/index.js";
import { createServer, serve } from "../../dist/server/index.js";

const [, , path, token] = process.argv;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const words = "one two three four five six seven eight nine ten eleven twelve";
const model = scriptedModel(() => words, { chunks: 12, delayMs: 5, sleep });
const server = createServer({ agents: { helper: { model } }, store: `sqlite:${path}`, token });
const { url } = await serve(server, { port: 0 });
console.log(url);
