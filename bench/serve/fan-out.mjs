// Live events to many subscribers of one branch. A run says its answer delta by delta, each in a turn of the event loop of
// its own; every subscriber gets every event. Beside it, the same events byte by byte, recorded from such a run, written to
// as many connections of Node's server by a loop that does nothing else. From the request that sets it off until the last
// subscriber has the last event. All subscribers of both are in this process and read alike.

import { interleave, median, quantile } from "../lib/stats.mjs";
import { show } from "../lib/table.mjs";
import { ask } from "./lib/model.mjs";
import { liveOf, withBare, withBough } from "./lib/servers.mjs";
import { Subscriber, subscribe } from "./lib/subscribers.mjs";

const many = 200;
const least = 0.7;
const sessionId = "fan";

export async function run(context) {
  const asked = ask({ deltas: context.quick ? 200 : 500, size: 5, paced: true });
  await withBough(context, (bough) =>
    withBare(async (bare) => {
      await bough.createSession(sessionId);
      const events = await record(bough, asked);
      const jobs = {
        bough: await fanOut(context, bough, events.length, () => bough.submit(sessionId, asked)),
        bare: await fanOut(context, bare, events.length, () => bare.post("/", JSON.stringify(events), 202)),
      };
      const processor = { bough: [], bare: [] };
      const candidate = ([name, job]) => [
        name,
        async (round) => {
          context.progress(`round ${round + 1}: ${name}`);
          const { ms, cpu } = await job();
          if (round >= 0) processor[name].push(cpu);
          return ms;
        },
      ];
      const rounds = context.quick ? 5 : 20;
      const times = await interleave(Object.fromEntries(Object.entries(jobs).map(candidate)), {
        rounds,
        warmUp: 3,
        time: (work) => work(),
      });
      context.row(fanOutRow(times, events, processor));
      context.row(processorRow(events, processor));
    }),
  );
}

/** The events of one run, as they stand in the stream. */
async function record(bough, asked) {
  const subscriber = new Subscriber();
  await subscriber.open(bough, liveOf(sessionId));
  let text = "";
  const over = subscriber.until((piece) => {
    text += piece.toString();
    return text.includes('"type":"run-end"');
  });
  await bough.submit(sessionId, asked);
  await over;
  subscriber.close();
  return text.match(/(?:id: \d+\n)?data: \{.*\}\n\n/g);
}

/** How long it takes, on the clock and of the server's processor, until all have all of it. */
async function fanOut(context, served, events, setOff) {
  context.progress(`connecting ${many}`);
  const subscribers = await subscribe(served, () => liveOf(sessionId), many);
  return async () => {
    const expected = subscribers.map((each) => each.events + events);
    const cpu = await served.call("processor");
    const from = performance.now();
    await Promise.all([setOff(), ...subscribers.map((each, i) => each.untilEvents(expected[i]))]);
    const ms = performance.now() - from;
    const extra = subscribers.find((each, i) => each.events !== expected[i]);
    if (extra) throw new Error("a subscriber got more events than were sent");
    return { ms, cpu: (await served.call("processor")) - cpu };
  };
}

function fanOutRow({ bough, bare }, events, processor) {
  const delivered = many * events.length;
  const rate = (times) => (1000 * delivered) / median(times);
  const bytes = events.reduce((sum, event) => sum + Buffer.byteLength(event), 0) / events.length;
  const fastest = quantile(bare, 0.1) / quantile(bough, 0.1);
  return {
    what: "events a second, all subscribers together",
    measured: show.rate(rate(bough)),
    limit: show.rate(rate(bare)),
    ratio: rate(bough) / rate(bare),
    target: { min: least },
    note: `${events.length} events of ${Math.round(bytes)} bytes to each of ${many} · ratio of the fastest tenth ${show.ratio(fastest)}`,
    figures: { bough: median(bough), bare: median(bare), events: events.length, bytes, processor },
  };
}

/** The clock says little where the subscribers are slower than the server: its processor says what it did. */
function processorRow(events, { bough, bare }) {
  const each = (times) => median(times) / (many * events.length);
  return {
    what: "the server's processor for an event to one subscriber",
    measured: show.ms(each(bough)),
    limit: show.ms(each(bare)),
    ratio: each(bare) / each(bough),
    target: { min: least },
    note: "ratio: how much of it a bare server needs",
    figures: { bough: each(bough), bare: each(bare) },
  };
}
