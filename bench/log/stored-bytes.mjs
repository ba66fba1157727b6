// What a conversation costs on the disk, for each byte of it: turns of four messages with a tool call, written as an agent
// writes them. The conversation's own bytes are the JSON of its messages as loadBranch gives them. The targets are for 200
// turns; a longer conversation, which has segments, shows what it comes to.

import { basename, dirname, join } from "node:path";
import { toolTurns, writeToolTurn } from "../lib/conversation.mjs";
import { eachStore } from "../lib/runner.mjs";
import { durableKinds, filesBelow, newPlace, openAt, sizeOf } from "../lib/stores.mjs";
import { show } from "../lib/table.mjs";
import { runLangGraph } from "./peers/langgraph.mjs";

const messagesPerTurn = 4;
const turnsWithTarget = 200;

export async function run(context) {
  await eachStore(context, durableKinds, async (kind) => {
    for (const turns of [turnsWithTarget, context.quick ? 1000 : 2500]) {
      context.progress(`${kind}: ${turns} turns`);
      const place = await newPlace(context.dir, `bytes-${kind}`);
      const payload = await converse(kind, place, turns);
      for (const row of measures[kind](place)) context.row(rowOf(kind, turns, row, payload));
    }
  });
  await besideLangGraph(context, context.quick ? 50 : 200);
}

/** Writes the conversation, closes the store, and says how many bytes the messages have. */
async function converse(kind, place, turns) {
  const sessions = await openAt(kind, place);
  await sessions.createSession("s");
  const source = toolTurns();
  for (let i = 0; i < turns; i++) await writeToolTurn(sessions, { sessionId: "s" }, source.next().value);
  const { messages } = await sessions.loadBranch("s");
  if (messages.length !== turns * messagesPerTurn) throw new Error(`${messages.length} messages after ${turns} turns`);
  await sessions.close();
  return Buffer.byteLength(JSON.stringify(messages));
}

const measures = {
  // The file of shared memory holds nothing that is kept; with the package for Node 20 it stays until garbage is collected.
  sqlite: (place) => {
    const files = filesBelow(place).filter((path) => !path.endsWith("-shm"));
    return [{ what: "whole database", bytes: files.reduce((sum, path) => sum + sizeOf(path), 0), max: 1.5 }];
  },
  file: (place) => {
    const files = filesBelow(place);
    const log = files.filter((path) => path.endsWith(join("main", "events.jsonl")));
    return [
      { what: "log alone", bytes: log.reduce((sum, path) => sum + sizeOf(path), 0), max: 1.3 },
      { what: "everything", bytes: sizeOf(place), max: 2.5, note: largest(files) },
    ];
  },
};

/** The files that take most of the space; those of a directory of segments count together. */
function largest(files) {
  const sizes = new Map();
  for (const path of files) {
    const folder = basename(dirname(path));
    const name = folder === "segments" ? folder : basename(path);
    sizes.set(name, (sizes.get(name) ?? 0) + sizeOf(path));
  }
  const shown = [...sizes].sort((x, y) => y[1] - x[1]).slice(0, 4);
  return shown.map(([name, size]) => `${name} ${show.bytes(size)}`).join(" · ");
}

function rowOf(kind, turns, { what, bytes, max, note }, payload) {
  return {
    what: `${kind}, ${what}, ${turns.toLocaleString("en")} turns`,
    measured: show.bytes(bytes),
    limit: show.bytes(payload),
    ratio: bytes / payload,
    ...(turns === turnsWithTarget && { target: { max } }),
    ...(note && { note }),
    figures: { bytes, payload },
  };
}

async function besideLangGraph(context, turns) {
  const what = `for comparison: LangGraph, SqliteSaver, ${turns} turns`;
  try {
    context.progress(`LangGraph: ${turns} turns`);
    const place = await newPlace(context.dir, "langgraph");
    const { versions, messages } = await runLangGraph(join(place, "langgraph.db"), turns);
    if (messages !== turns * messagesPerTurn) throw new Error(`it has ${messages} messages`);
    const bytes = sizeOf(place);
    const payload = await converse("memory", undefined, turns);
    context.row({
      what,
      measured: show.bytes(bytes),
      limit: show.bytes(payload),
      ratio: bytes / payload,
      note: versions,
      figures: { bytes, payload },
    });
  } catch (error) {
    context.row({ what, skipped: String(error?.message ?? error).split("\n")[0] });
  }
}
