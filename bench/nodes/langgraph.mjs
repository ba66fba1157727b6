// LangGraph.js with its PostgresSaver, which stores the whole conversation at every step: what both have stored after the
// same turns of four messages, and what a turn takes when the conversation is long.

import { toolTurns, writeToolTurn } from "../lib/conversation.mjs";
import { eachStore } from "../lib/runner.mjs";
import { openAt } from "../lib/stores.mjs";
import { show } from "../lib/table.mjs";
import { runLangGraph } from "../log/peers/langgraph.mjs";
import { besideRows, quietDisk, takeTurns } from "../run/lib/compare.mjs";
import { firstLine, withSystems } from "../run/lib/systems.mjs";
import { connections, storedBytes, withPostgres } from "./servers.mjs";

const names = ["bough", "langgraph"];
const messagesPerTurn = 4;
const length = 1000;
const name = `a turn at ${length.toLocaleString("en")} messages`;

export async function run(context) {
  await eachStore(context, ["postgres"], () =>
    withPostgres(context, async ({ newDatabase }) => {
      await compareBytes(context, newDatabase, context.quick ? 50 : 200);
      await compareTurns(context, newDatabase);
    }),
  );
}

async function compareBytes(context, newDatabase, turns) {
  const what = `stored for ${turns} turns of ${messagesPerTurn} messages`;
  if (!context.systems.includes("langgraph")) return;
  try {
    context.progress(what);
    let payload;
    const ours = await growthOf(await newDatabase(), async (url, count) => {
      payload = await converse(url, count);
    });
    const theirs = await growthOf(await newDatabase(), async (url, count) => {
      const { messages } = await runLangGraph(url, count);
      if (messages !== count * messagesPerTurn) throw new Error(`LangGraph has ${messages} messages`);
    });
    context.row(bytesRow({ what, turns, payload, ours, theirs }));
  } catch (error) {
    context.row({ what, skipped: firstLine(error), failed: true });
  }

  /** What the conversation takes, and that with the tables it found, which were set up and empty. */
  async function growthOf(url, talk) {
    await talk(url, 0);
    const empty = await storedBytes(url);
    await talk(url, turns);
    const all = await storedBytes(url);
    return { grown: all - empty, all };
  }
}

function bytesRow({ what, turns, payload, ours, theirs }) {
  const times = ({ grown }) => `${show.ratio(grown / payload)} ×`;
  return {
    what,
    measured: show.bytes(ours.grown),
    limit: show.bytes(theirs.grown),
    ratio: ours.grown / theirs.grown,
    // What LangGraph stores grows with the square of the turns.
    ...(turns === 200 && { target: { max: 0.01 } }),
    note: `the conversation has ${show.bytes(payload)}: stored ${times(ours)} and ${times(theirs)} · with the empty tables ${show.bytes(ours.all)} / ${show.bytes(theirs.all)} = ${show.ratio(ours.all / theirs.all)}`,
    figures: { ours, theirs, payload },
  };
}

/** Writes the conversation as an agent writes it; says how many bytes the messages have. */
async function converse(url, turns) {
  const sessions = await openAt("postgres", url);
  if (turns > 0) await sessions.createSession("s");
  const source = toolTurns();
  for (let i = 0; i < turns; i++) {
    await writeToolTurn(sessions, { sessionId: "s", branchId: "main" }, source.next().value);
  }
  const messages = turns > 0 ? (await sessions.loadBranch("s")).messages : [];
  if (messages.length !== turns * messagesPerTurn) throw new Error(`${messages.length} messages after ${turns} turns`);
  await sessions.close();
  return Buffer.byteLength(JSON.stringify(messages));
}

function compareTurns(context, newDatabase) {
  const wanted = names.map((system) => ({ system, name }));
  return withSystems(context, wanted, async (running) => {
    for (const { call } of running) {
      await call("open", { deltas: 1, postgres: { url: await newDatabase(), connections } });
    }
    const ms = context.quick ? 100 : 500;
    const jobs = running.map((each) => ({ ...each, run: () => each.call("turns", { length, ms }) }));
    const timesOf = await takeTurns(context, jobs, {
      rounds: context.quick ? 4 : 15,
      before: quietDisk(context.dir),
    });
    for (const { call } of running) await call("close");
    for (const row of besideRows(timesOf, { name, names, prefix: `${name}, `, targets: { langgraph: 50 } }))
      context.row(row);
  });
}
