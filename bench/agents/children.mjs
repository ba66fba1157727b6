// Subagents of a long branch: what one costs beside an append, and what a hundred cost beside their models.

import { createAgent, defineTool, openSessions, subagent } from "bough";
import { scriptedModel } from "bough/scripted";
import { pooledTurns } from "../lib/conversation.mjs";
import { growTo } from "../lib/history.mjs";
import { interleave, median } from "../lib/stats.mjs";
import { newPlace, openAt, openStoreAt } from "../lib/stores.mjs";
import { show } from "../lib/table.mjs";

const ref = { sessionId: "s", branchId: "main" };
const modelMs = 50;
const input = { type: "object" };

export async function run(context) {
  const length = context.quick ? 2000 : 10_000;
  const place = await newPlace(context.dir, "children");
  const sessions = await openAt("sqlite", place);
  await sessions.createSession(ref.sessionId);
  await growTo(sessions, ref, length, { next: pooledTurns(), progress: context.progress });
  await sessions.close();
  await single(context, place, length);
  await parallel(context, place, length);
  await queued(context, place, length);
}

/** What it takes to queue an input on a long branch. */
async function queued(context, place, length) {
  const rounds = context.quick ? 40 : 150;
  const store = await openStoreAt("sqlite", place);
  const counts = { append: 0 };
  const counted = new Proxy(store, {
    get(target, name) {
      const value = target[name];
      if (typeof value !== "function") return value;
      return (...args) => {
        if (name === "append") counts.append++;
        return Reflect.apply(value, target, args);
      };
    },
  });
  const sessions = await openSessions(counted);
  await sessions.loadBranch(ref);
  await sessions.createSession("beside");
  const writer = await sessions.beginTurn({ ...ref, sessionId: "beside" }, "Go.", { leaseMs: 3_600_000 });
  const next = pooledTurns();
  let appends = 0;
  const times = await interleave(
    {
      async queued() {
        const [before, begun] = [counts.append, performance.now()];
        const { inputId } = await sessions.queueInput(ref, next().user);
        const took = performance.now() - begun;
        appends = Math.max(appends, counts.append - before);
        // The queue stays as long as it was.
        await sessions.withdrawInput(ref, inputId);
        return took;
      },
      async append() {
        const begun = performance.now();
        await writer.add({ role: "user", content: next().user });
        return performance.now() - begun;
      },
    },
    { rounds, warmUp: 10, time: (work) => work(), progress: context.progress },
  );
  await sessions.close();
  const [measured, limit] = [median(times.queued), median(times.append)];
  context.row({
    what: `an input queued on ${length.toLocaleString("en")} messages, beside one append`,
    measured: show.ms(measured),
    limit: show.ms(limit),
    ratio: measured / limit,
    target: { max: 1.5 },
    note: `${appends} append each (at most 1)`,
    figures: { measured, limit, appends },
  });
}

/** The time that a tool's `spawn` takes, with a model that answers at once. */
async function single(context, place, length) {
  const rounds = context.quick ? 40 : 150;
  const store = await openStoreAt("sqlite", place);
  const child = createAgent({ name: "child", model: scriptedModel(() => "Done.") });
  let took = 0;
  const spawning = defineTool({
    input,
    async execute(_, { spawn }) {
      const begun = performance.now();
      await spawn(child, "Do it.");
      took = performance.now() - begun;
      return "done";
    },
  });
  const model = scriptedModel((prompt) => (prompt.at(-1).role === "tool" ? "Done." : call("spawning")));
  const agent = createAgent({ model, store, tools: { spawning } });
  const next = pooledTurns();
  await agent.createSession("appends");
  const writer = await agent.beginTurn({ ...ref, sessionId: "appends" }, "Go.", { leaseMs: 3_600_000 });
  const times = await interleave(
    {
      async child() {
        await agent.run("Go.", ref).result;
        return took;
      },
      async append() {
        const begun = performance.now();
        await writer.add({ role: "user", content: next().user });
        return performance.now() - begun;
      },
    },
    { rounds, warmUp: 10, time: (work) => work(), progress: context.progress },
  );
  await agent.close();
  const [measured, limit] = [median(times.child), median(times.append)];
  context.row({
    what: `a subagent on ${length.toLocaleString("en")} messages: fork, first turn and result, beside one append`,
    measured: show.ms(measured),
    limit: show.ms(limit),
    ratio: measured / limit,
    target: { max: 5 },
    figures: { measured, limit },
  });
}

/** A hundred calls of a subagent in one batch, of which eight run at a time, each with a model that takes a while. */
async function parallel(context, place, length) {
  const [many, atOnce] = [100, 8];
  const store = await openStoreAt("sqlite", place);
  const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const helper = scriptedModel(() => sleep(modelMs).then(() => "Done."));
  const child = createAgent({ name: "child", model: helper });
  const help = subagent(child, { description: "Helps.", permission: false });
  const calls = Array.from({ length: many }, (_, i) => ({ name: "help", input: { input: `Do ${i}.` } }));
  const model = scriptedModel((prompt) => (prompt.at(-1).role === "tool" ? "Done." : { calls }));
  const agent = createAgent({ model, store, tools: { help }, limits: { parallelTools: atOnce } });
  const run = async () => {
    await agent.run("Go.", ref).result;
    // A scripted model keeps the prompts of its calls, which no other model does.
    for (const { calls } of [model, helper]) calls.length = 0;
  };
  await run();
  globalThis.gc?.();
  const before = process.memoryUsage().rss;
  const times = [];
  for (let i = 0; i < (context.quick ? 3 : 7); i++) {
    const begun = performance.now();
    await run();
    times.push(performance.now() - begun);
  }
  const grown = (process.memoryUsage().rss - before) / 2 ** 20;
  await agent.close();
  const ideal = modelMs * Math.ceil(many / atOnce);
  context.row({
    what: `${many} subagents on ${length.toLocaleString("en")} messages, ${atOnce} at a time, each with a model of ${modelMs} ms, beside the models alone`,
    measured: show.ms(median(times)),
    limit: show.ms(ideal),
    ratio: median(times) / ideal,
    target: { max: 1.3 },
    note: `memory grew by ${grown.toFixed(0)} MB (at most 200)`,
    figures: { measured: median(times), ideal, grownMb: grown },
  });
}

function call(name) {
  return { calls: [{ name, input: {} }] };
}
