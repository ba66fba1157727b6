// The first turn of a process that has never seen the branch: it reads what the model sees, whatever lies before it.

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { compactTo, growTo } from "../lib/history.mjs";
import { median, shuffled } from "../lib/stats.mjs";
import { newPlace, openAt } from "../lib/stores.mjs";
import { show } from "../lib/table.mjs";
import { seeded } from "../lib/words.mjs";

const program = fileURLToPath(new URL("./cold-run-program.mjs", import.meta.url));
const visible = 60;

export async function run(context) {
  const long = context.quick ? 20_000 : 100_000;
  const jobs = [
    { name: "short", place: await fill(context, visible), runs: [] },
    { name: "long", place: await fill(context, long), runs: [] },
  ];
  const processes = context.quick ? 7 : 25;
  const random = seeded(7);
  for (let i = 0; i < processes; i++) {
    context.progress(`process ${i + 1} of ${processes}`);
    for (const job of shuffled(jobs, random)) job.runs.push(await firstTurn(job.place));
  }
  const of = (name) => median(jobs.find((job) => job.name === name).runs.map((each) => each.turn));
  const [few, many] = [of("short"), of("long")];
  context.row({
    what: `first turn at ${long.toLocaleString("en")} messages, ${visible} visible, beside one at ${visible}`,
    measured: show.ms(many),
    limit: show.ms(few),
    ratio: many / few,
    target: { max: 2 },
    note: `what the model was given: ${jobs.map(({ runs }) => runs[0].seen).join(" and ")} messages and more with each turn`,
    figures: { short: few, long: many },
  });
}

async function fill({ dir, progress }, messages) {
  const place = await newPlace(dir, `cold-${messages}`);
  const sessions = await openAt("sqlite", place);
  const ref = { sessionId: "s", branchId: "main" };
  await sessions.createSession("s");
  await growTo(sessions, ref, messages, { progress });
  if (messages > visible) await compactTo(sessions, ref, visible);
  await sessions.close();
  return place;
}

async function firstTurn(place) {
  const { stdout } = await promisify(execFile)(process.execPath, ["--expose-gc", program, place]);
  return JSON.parse(stdout);
}
