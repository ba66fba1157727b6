// Run by cold-load.mjs: loads a branch, says how long that took, and how long JSON.parse takes for the same messages.
// With `watch`, which costs time itself, it says where the time went. Asked to "parse", it only parses a text once.

import { readFileSync } from "node:fs";

const [what, options] = process.argv.slice(2);
const { kind, place, messages: expected, watch } = JSON.parse(options);
const report = what === "parse" ? parseOnce() : await load();
console.log(JSON.stringify(report));

function parseOnce() {
  const text = readFileSync(place, "utf8");
  const from = performance.now();
  JSON.parse(text);
  return { parse: performance.now() - from };
}

async function load() {
  const start = performance.now();
  const { openSessions } = await import("bough");
  const { importDrivers, openStoreAt } = await import("../lib/stores.mjs");
  const { median } = await import("../lib/stats.mjs");
  await import(`bough/stores/${kind}`);
  await importDrivers(kind);
  globalThis.gc({ type: "minor" });
  const begun = performance.now();

  const store = await openStoreAt(kind, place);
  const watched = watch ? watchStore(store) : undefined;
  const sessions = await openSessions(watched?.store ?? store);
  const opened = performance.now();
  const { messages } =
    what === "all"
      ? await sessions.loadBranch({ sessionId: "s", branchId: "main" })
      : await sessions.messages({ sessionId: "s", branchId: "main" }, { last: expected });
  const loaded = performance.now();
  checkCount(messages.length);
  const shares = watched?.shares(loaded - opened);

  const text = JSON.stringify(messages);
  const parses = Array.from({ length: 5 }, () => {
    const from = performance.now();
    JSON.parse(text);
    return performance.now() - from;
  });
  await sessions.close();
  return { imports: begun - start, open: opened - begun, load: loaded - opened, parse: median(parses), shares };
}

/** The last messages come as whole turns, so there may be a few more. */
function checkCount(count) {
  const right = what === "all" ? count === expected : count >= expected && count < 2 * expected;
  if (!right) throw new Error(`${count} messages instead of ${expected}`);
}

/** The store with a clock on its methods, which may be called at the same time, and on JSON.parse. */
function watchStore(store) {
  const { parse } = JSON;
  const spent = { read: 0, parse: 0 };
  let underWay = 0;
  let since;
  JSON.parse = (text) => {
    const from = performance.now();
    const value = parse(text);
    spent.parse += performance.now() - from;
    return value;
  };
  const call = async (method, args) => {
    if (underWay++ === 0) since = { at: performance.now(), parsed: spent.parse };
    try {
      return await method.apply(store, args);
    } finally {
      if (--underWay === 0) spent.read += performance.now() - since.at - (spent.parse - since.parsed);
    }
  };
  const get = (target, name) => {
    const value = Reflect.get(target, name);
    return typeof value === "function" ? (...args) => call(value, args) : value;
  };
  const shares = (total) => {
    JSON.parse = parse;
    return { ...spent, "fold and rest": total - spent.read - spent.parse };
  };
  return { store: new Proxy(store, { get }), shares };
}
