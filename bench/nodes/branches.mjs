// Durable turns on 64 branches at once, beside what the same server does with bare commits: one row each, with the bytes of
// an append, on 16 connections. A turn needs two commits, so half of that would be all of what bare commits allow; appends
// that wait together share a commit, so more is possible.

import { createAgent } from "bough";
import pg from "pg";
import { pooledTurns, writeShortTurn } from "../lib/conversation.mjs";
import { eachStore } from "../lib/runner.mjs";
import { interleave, median, quantile } from "../lib/stats.mjs";
import { openAt } from "../lib/stores.mjs";
import { show } from "../lib/table.mjs";
import { textsOfOneTurn } from "../log/durable-turn.mjs";
import { modelV4 } from "../run/lib/model-v4.mjs";
import { withPostgres, withRedis } from "./servers.mjs";

const branches = 64;
const bareConnections = 16;
const commitsPerTurn = 2;
const perRound = { bare: 100, turns: 8 };

const measures = { postgres: inPostgres, redis: inRedis };

export async function run(context) {
  await eachStore(context, Object.keys(measures), (kind) => measures[kind](context));
}

function inPostgres(context) {
  return withPostgres(context, async ({ newDatabase }) => {
    const sessions = await openAt("postgres", await newDatabase());
    const bare = await bareCommits(await newDatabase());
    const jobs = await jobsOn(sessions);
    const candidates = { bare: bare.run, ...jobs };
    const times = await interleave(candidates, { ...roundsOf(context), progress: context.progress });
    await bare.close();
    await sessions.close();
    for (const name of Object.keys(jobs)) context.row(besideBare(name, times));
  });
}

/** For information: no bare commit is like a script of Redis. */
function inRedis(context) {
  return withRedis(context, async ({ url }) => {
    const sessions = await openAt("redis", url);
    const jobs = await jobsOn(sessions);
    const times = await interleave(jobs, { ...roundsOf(context), progress: context.progress });
    await sessions.close();
    for (const name of Object.keys(jobs)) {
      const rate = turnRate(times[name], 0.5);
      context.row({ what: `redis, ${name}`, measured: show.rate(rate), figures: { rate } });
    }
  });
}

function roundsOf({ quick }) {
  return quick ? { rounds: 7, warmUp: 3 } : { rounds: 40, warmUp: 5 };
}

/** Turns on all branches at once: written as an agent writes them, and by an agent. */
async function jobsOn(sessions) {
  const next = pooledTurns();
  const { model } = modelV4({});
  const agent = createAgent({ model, store: sessions.store });
  const write = (scope) => writeShortTurn(sessions, scope, next());
  const ask = (scope) => agent.run(next().user, scope).text();
  const apart = await scopesOf(sessions, "apart");
  const together = await scopesOf(sessions, "together");
  const asked = await scopesOf(agent, "asked");
  return {
    [`${branches} sessions`]: () => atOnce(apart, write),
    [`${branches} branches of one session`]: () => atOnce(together, write),
    [`agent.run on ${branches} sessions`]: () => atOnce(asked, ask),
  };
}

/** Branches of one session, or each of a session of its own. */
async function scopesOf(sessions, name) {
  const inOne = name === "together";
  if (inOne) await sessions.createSession(name);
  const numbers = Array.from({ length: branches }, (_, i) => i);
  return Promise.all(
    numbers.map(async (i) => {
      const scope = inOne ? { sessionId: name, branchId: `b${i}` } : { sessionId: `${name}-${i}`, branchId: "main" };
      if (inOne) await sessions.createBranch(name, { branchId: scope.branchId });
      else await sessions.createSession(scope.sessionId);
      return scope;
    }),
  );
}

async function atOnce(scopes, turn) {
  const branch = async (scope) => {
    for (let i = 0; i < perRound.turns; i++) await turn(scope);
  };
  await Promise.all(scopes.map(branch));
}

async function bareCommits(url) {
  const texts = await textsOfOneTurn();
  const clients = Array.from({ length: bareConnections }, () => new pg.Client(url));
  await Promise.all(clients.map((client) => client.connect()));
  await clients[0].query("CREATE TABLE bare (no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, data text NOT NULL)");
  const statement = { name: "bare", text: "INSERT INTO bare (data) VALUES ($1)" };
  const loop = async (client) => {
    for (let i = 0; i < perRound.bare; i++) await client.query({ ...statement, values: [texts[i % texts.length]] });
  };
  return {
    run: () => Promise.all(clients.map(loop)),
    close: () => Promise.all(clients.map((client) => client.end())),
  };
}

function turnRate(times, share) {
  return (branches * perRound.turns * 1000) / quantile(times, share);
}

function besideBare(name, times) {
  const rates = (share) => {
    const commits = (bareConnections * perRound.bare * 1000) / quantile(times.bare, share);
    return { commits, limit: commits / commitsPerTurn, turns: turnRate(times[name], share) };
  };
  const { turns, limit, commits } = rates(0.5);
  const quiet = rates(0.1);
  return {
    what: `postgres, ${name}`,
    measured: show.rate(turns),
    limit: show.rate(limit),
    ratio: turns / limit,
    // An agent's turn is more than its appends.
    ...(!name.startsWith("agent") && { target: { min: 0.6 } }),
    note: `bare commits ${show.rate(commits)} · fastest tenth: ${show.rate(quiet.turns)} / ${show.rate(quiet.limit)} = ${show.ratio(quiet.turns / quiet.limit)}`,
    figures: { turns, commits, quiet, milliseconds: { bare: median(times.bare), turns: median(times[name]) } },
  };
}
