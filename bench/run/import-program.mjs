// Run by import.mjs: `node import-program.mjs time|list URL…`. Says how long the imports took and how much memory the
// process has then, or which modules were loaded.

import * as module from "node:module";

const [what, ...urls] = process.argv.slice(2);
const modules = [];
if (what === "list") {
  module.registerHooks({
    load(url, context, nextLoad) {
      modules.push(url);
      return nextLoad(url, context);
    },
  });
}

const from = performance.now();
for (const url of urls) await import(url);
const ms = performance.now() - from;
console.log(JSON.stringify(what === "list" ? { modules } : { ms, rss: process.memoryUsage.rss() }));
process.exit(0);
