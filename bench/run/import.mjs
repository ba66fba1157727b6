// What `import "bough"` costs: the time and the memory of a new process that does only this, less those of one that does
// nothing, and which modules are loaded by it.

import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { median, quantile, shuffled } from "../lib/stats.mjs";
import { show } from "../lib/table.mjs";
import { seeded } from "../lib/words.mjs";
import { systems } from "./lib/systems.mjs";

const program = fileURLToPath(new URL("./import-program.mjs", import.meta.url));
const root = new URL("../../", import.meta.url).href;
const entry = `${root}dist/index.js`;
const most = { ms: 60, bytes: 15_000_000 };

const imports = {
  "ai-sdk": ["ai"],
  langgraph: ["@langchain/langgraph"],
  "openai-agents": ["@openai/agents"],
  mastra: ["@mastra/core", "@mastra/core/agent"],
  adk: ["@google/adk"],
};

/** What must not come with the front door: stores with drivers, providers, servers, and what they need. */
const heavy = [
  /\/src\/(stores\/(?!memory\/)|server\/|client\/|cli\/|tui\/|react\/|interop\/|bots\/|mcp\/|testing\/)/,
  /\/node_modules\/(?!valibot\/|@standard-schema\/)/,
  /^node:(sqlite|http|https|http2|net|tls|dgram|child_process|worker_threads|cluster)$/,
];

export async function run(context) {
  const jobs = { bare: [], bough: [entry] };
  for (const name of context.systems) if (imports[name]) jobs[name] = imports[name];
  const runs = await runAll(context, jobs, context.quick ? 7 : 21);
  const over = (name, what) =>
    median(runs[name].map((each) => each[what])) - median(runs.bare.map((each) => each[what]));
  for (const row of limitRows(over, runs)) context.row(row);
  context.row(await modulesRow(context));
  for (const name of Object.keys(imports).filter((each) => runs[each])) context.row(besideRow(name, over));
}

/** Every import in new processes, taking turns; the first process of each warms the file cache. */
async function runAll(context, jobs, processes) {
  const runs = Object.fromEntries(Object.keys(jobs).map((name) => [name, []]));
  const random = seeded(7);
  for (let i = -1; i < processes; i++) {
    context.progress(`process ${i + 1} of ${processes} for each`);
    for (const name of shuffled(Object.keys(jobs), random)) {
      const from = performance.now();
      const report = await importIn(context, "time", jobs[name]);
      if (i >= 0) runs[name].push({ ...report, wall: performance.now() - from });
    }
  }
  return runs;
}

async function importIn({ node }, what, urls) {
  const { stdout } = await promisify(execFile)(node, ["--no-warnings", program, what, ...urls]);
  return JSON.parse(stdout);
}

function limitRows(over, runs) {
  const [wall, rss] = [over("bough", "wall"), over("bough", "rss")];
  const inside = runs.bough.map(({ ms }) => ms);
  const bare = median(runs.bare.map((each) => each.wall));
  return [
    {
      what: "time",
      measured: show.ms(wall),
      limit: show.ms(most.ms),
      ratio: wall / most.ms,
      target: { max: 1 },
      note: `the import itself ${show.ms(median(inside))}, fastest tenth ${show.ms(quantile(inside, 0.1))} · the bare process ${show.ms(bare)}`,
      figures: { wall, inside: median(inside), bare },
    },
    {
      what: "resident memory",
      measured: show.bytes(rss),
      limit: show.bytes(most.bytes),
      ratio: rss / most.bytes,
      target: { max: 1 },
      figures: { rss },
    },
  ];
}

/** How many modules that should not be there are. */
async function modulesRow(context) {
  const [bare, { modules }] = [await importIn(context, "list", []), await importIn(context, "list", [entry])];
  const files = modules.filter((each) => !bare.modules.includes(each));
  const loaded = files.flatMap(sourcesOf);
  const found = loaded.filter((each) => heavy.some((pattern) => pattern.test(each)));
  return {
    what: "providers, drivers, servers among the modules",
    measured: `${found.length}`,
    limit: `of ${loaded.length}`,
    ratio: found.length,
    target: { max: 0 },
    note: found.length > 0 ? found.map(shortName).join(", ") : `${files.length} files: ${summary(loaded)}`,
    figures: { modules: loaded.map(shortName) },
  };
}

/** The modules that a built file is made of, as its source map has them. */
function sourcesOf(file) {
  if (!file.startsWith(`${root}dist/`)) return [file];
  const { sources } = JSON.parse(readFileSync(fileURLToPath(`${file}.map`), "utf8"));
  return sources.map((source) => new URL(source, file).href);
}

function shortName(module) {
  return module.replace(root, "").replace(/^.*\/node_modules\//, "");
}

/** So many modules of each room, and what comes from elsewhere. */
function summary(loaded) {
  const own = `${root}src/`;
  const rooms = new Map();
  for (const module of loaded.filter((each) => each.startsWith(own))) {
    const room = module.slice(own.length).split("/").slice(0, -1).join("/") || "index";
    rooms.set(room, (rooms.get(room) ?? 0) + 1);
  }
  const elsewhere = loaded.filter((each) => !each.startsWith(own)).map(shortName);
  return [...rooms]
    .map(([room, modules]) => `${room} ${modules}`)
    .concat(elsewhere)
    .join(" · ");
}

function besideRow(name, over) {
  const [mine, theirs] = [over("bough", "wall"), over(name, "wall")];
  return {
    what: `time, beside ${systems[name].label}`,
    measured: show.ms(mine),
    limit: show.ms(theirs),
    ratio: mine / theirs,
    note: `${imports[name].join(" and ")} · resident memory ${show.bytes(over(name, "rss"))}`,
    figures: { wall: theirs, rss: over(name, "rss") },
  };
}
