// A branch in a process that has never seen it: all of it, and its last 50 messages. Each load is a new process. The limit
// is as cold as the load: a process that does nothing but parse the same messages as one JSON text, once. What a warm parse
// takes (the median of a few, after the load) is in the note. The system's file cache is warm, Node and its modules are
// loaded, what loading them left behind is collected, and the store is open: a process opens it once, for all its branches.
//
// All of it may take four times the parse, the last 50 a twentieth of that; what they take of the load itself is in the note.

import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { growTo } from "../lib/history.mjs";
import { eachStore } from "../lib/runner.mjs";
import { median, shuffled } from "../lib/stats.mjs";
import { durableKinds, newPlace, openAt } from "../lib/stores.mjs";
import { show } from "../lib/table.mjs";
import { seeded } from "../lib/words.mjs";

const program = fileURLToPath(new URL("./cold-load-program.mjs", import.meta.url));
const length = 10_000;
const last = 50;

export async function run(context) {
  const places = {};
  await eachStore(context, durableKinds, async (kind) => {
    places[kind] = await newPlace(context.dir, `cold-${kind}`);
    await fill(context, kind, places[kind]);
  });
  await compareLoads(context, places);
}

/** Puts a long branch into the store at that place, and its messages as one JSON text into the directory of this run. */
export async function fill(context, kind, place) {
  const sessions = await openAt(kind, place);
  await sessions.createSession("s");
  await growTo(sessions, { sessionId: "s", branchId: "main" }, length);
  const { messages } = await sessions.loadBranch("s");
  await writeFile(textIn(context), JSON.stringify(messages));
  await sessions.close();
}

/** Loads from the places, which are filled, by kind of store. */
export async function compareLoads(context, places) {
  const processes = context.quick ? 7 : 25;
  const loads = Object.keys(places).flatMap((kind) => ["all", "last"].map((what) => ({ kind, what })));
  const jobs = [...loads, { kind: "text", what: "parse" }];
  places.text = textIn(context);
  const results = jobs.map((job) => ({ ...job, runs: [] }));
  const random = seeded(7);
  for (let i = 0; i < processes; i++) {
    context.progress(`process ${i + 1} of ${processes} for each store`);
    for (const job of shuffled(results, random)) job.runs.push(await loadIn(job, places));
  }
  const coldParse = median(results.at(-1).runs.map((run) => run.parse));
  for (const { kind } of loads.filter(({ what }) => what === "all")) {
    const [all, tail] = results.filter((job) => job.kind === kind);
    const { shares } = await loadIn({ ...all, watch: true }, places);
    for (const row of rowsOf(kind, all.runs, tail.runs, { shares, coldParse })) context.row(row);
  }
}

function textIn({ dir }) {
  return join(dir, "messages.json");
}

async function loadIn({ kind, what, watch = false }, places) {
  const options = JSON.stringify({ kind, place: places[kind], messages: what === "all" ? length : last, watch });
  const { stdout } = await promisify(execFile)(process.execPath, ["--expose-gc", program, what, options]);
  return JSON.parse(stdout);
}

const mostOfParse = 4;
const shareOfLast = 1 / 20;

function rowsOf(kind, all, tail, { shares, coldParse }) {
  const of = (runs, name) => median(runs.map((run) => run[name]));
  const [load, few] = [of(all, "load"), of(tail, "load")];
  const parse = of(all, "parse");
  const whole = (runs) => {
    const [open, opened] = [of(runs, "open"), median(runs.map((run) => run.open + run.load))];
    const imported = median(runs.map((run) => run.imports + run.open + run.load));
    return `opening ${show.ms(open)}, with it ${show.ms(opened)} · with imports ${show.ms(imported)}`;
  };
  const parts = Object.entries(shares).map(([name, ms]) => `${name} ${show.ms(ms)}`);
  return [
    {
      what: `${kind}, ${length.toLocaleString("en")} messages beside JSON.parse`,
      measured: show.ms(load),
      limit: show.ms(coldParse),
      ratio: load / coldParse,
      target: { max: mostOfParse },
      note: `${parts.join(", ")} · ${whole(all)} · a warm parse ${show.ms(parse)}, ratio ${show.ratio(load / parse)}`,
      figures: { load, parse, coldParse, imports: of(all, "imports"), open: of(all, "open"), shares },
    },
    {
      what: `${kind}, last ${last} beside the same`,
      measured: show.ms(few),
      limit: show.ms(coldParse),
      ratio: few / coldParse,
      target: { max: mostOfParse * shareOfLast },
      note: `${show.ratio(few / load)} of the load of all · ${whole(tail)}`,
      figures: { load: few, coldParse, ofAll: few / load, open: of(tail, "open") },
    },
  ];
}
