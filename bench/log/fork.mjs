// A fork is one row and one fact, whatever the history behind it: beside appending one event to a turn in the same store,
// and how much more the store holds after many of them. In files it is also a directory with a file in it; making one takes
// 50 µs, or half a millisecond where many were removed in the last minutes (ext4 passes over their inodes), so a bare one
// is made in every round and counted.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { codec } from "bough/events";
import { growTo } from "../lib/history.mjs";
import { eachStore } from "../lib/runner.mjs";
import { interleave, median } from "../lib/stats.mjs";
import { newPlace, openAt, sizeOf, storeKinds } from "../lib/stores.mjs";
import { show } from "../lib/table.mjs";
import { prose, seeded } from "../lib/words.mjs";

const ref = { sessionId: "s", branchId: "main" };
// A turn's cost grows with the turn, so each is used for a few events only.
const eventsPerTurn = 20;
const warmUp = 20;

export async function run(context) {
  const length = context.quick ? 10_000 : 100_000;
  const forks = context.quick ? 100 : 300;
  await eachStore(context, storeKinds, async (kind) => {
    const place = await newPlace(context.dir, `fork-${kind}`);
    const sessions = await prepare(context, kind, place, length);
    const made = kind === "file" ? maker(await newPlace(context.dir, "made")) : undefined;
    const times = await race(context, kind, sessions, forks, made);
    await sessions.close();
    context.row(costRow(kind, length, times));
    if (kind !== "memory") context.row(sizeRow(kind, forks, await sizeOnDisk({ kind, place, forks })));
  });
}

async function prepare({ progress }, kind, place, length) {
  const sessions = await openAt(kind, place);
  await sessions.createSession(ref.sessionId);
  await growTo(sessions, ref, length, { progress: (text) => progress(`${kind}: ${text}`) });
  return sessions;
}

/** Forks of the long branch and events appended elsewhere, in turns. */
async function race({ progress }, kind, sessions, forks, made) {
  const random = seeded(5);
  const from = await randomMessage(sessions, random);
  const text = prose(random, 500);
  const append = await eventWriter(sessions, forks + warmUp, text);
  progress(`${kind}: ${forks} forks`);
  const fork = () => sessions.forkBranch(ref, { from: from() });
  const bare = await bareAppend(sessions, text);
  return interleave({ fork, append, bare, ...(made && { made }) }, { rounds: forks, warmUp });
}

/** A function that makes a directory with a file in it. */
function maker(place) {
  let count = 0;
  return () => {
    const directory = join(place, String(++count));
    mkdirSync(directory);
    writeFileSync(join(directory, "file"), "");
  };
}

/** A function that appends one message to a turn that is open. */
async function eventWriter(sessions, events, text) {
  const writers = [];
  for (let i = 0; i * eventsPerTurn < events; i++) {
    await sessions.createSession(`t${i}`);
    writers.push(await sessions.beginTurn({ sessionId: `t${i}`, branchId: "main" }, text, { leaseMs: 3_600_000 }));
  }
  let written = 0;
  return () => writers[Math.floor(written++ / eventsPerTurn)].add({ role: "user", content: text });
}

/** A function that hands one event to the store, past everything that is above it. */
async function bareAppend(sessions, text) {
  await sessions.createSession("bare");
  let written = 0;
  return () => {
    const id = `e${String(++written).padStart(15, "0")}`;
    const event = codec.encode({ type: "state.changed", id, at: Date.now(), set: { text } });
    return sessions.store.append({ sessionId: "bare", branchId: "main" }, [event]);
  };
}

/** Picks any message of the long branch: the last of a turn, or one inside a turn. */
async function randomMessage(sessions, random) {
  const { messages } = await sessions.loadBranch(ref);
  return () => messages[Math.floor(random() * messages.length)].id;
}

/** Opens the store again and forks so many times; what it then holds more, for each fork. */
async function sizeOnDisk({ kind, place, forks }) {
  const before = sizeOf(place);
  const sessions = await openAt(kind, place);
  await forkMany(sessions, await randomMessage(sessions, seeded(6)), forks);
  await sessions.close();
  return (sizeOf(place) - before) / forks;
}

async function forkMany(sessions, from, forks) {
  for (let i = 0; i < forks; i++) await sessions.forkBranch(ref, { from: from() });
}

function costRow(kind, length, { fork, append, bare, made }) {
  const third = Math.ceil(fork.length / 3);
  const limit = median(append) + (made ? median(made) : 0);
  const notes = [
    `first forks ${show.ms(median(fork.slice(0, third)))}, last ${show.ms(median(fork.slice(-third)))}`,
    `store.append alone ${show.ms(median(bare))}`,
    ...(made ? [`directory and file alone ${show.ms(median(made))}`] : []),
  ];
  return {
    what: `${kind}, fork of ${length.toLocaleString("en")} messages beside one event${made ? ", directory and file" : ""}`,
    measured: show.ms(median(fork)),
    limit: show.ms(limit),
    ratio: median(fork) / limit,
    target: { max: 3 },
    note: notes.join(" · "),
    figures: { fork: median(fork), append: median(append), bare: median(bare), ...(made && { made: median(made) }) },
  };
}

function sizeRow(kind, forks, size) {
  return {
    what: `${kind}, stored for a fork, of ${forks}`,
    measured: show.bytes(size),
    limit: "1 KB",
    ratio: size / 1024,
    target: { max: 1 },
    figures: { size },
  };
}
