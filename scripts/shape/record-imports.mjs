// Module hooks for the child process of root-import.mjs: writes down what is asked for, even when it can't be had (a peer
// that is not installed, node:sqlite on a Node without it), and what is loaded.

import { appendFileSync } from "node:fs";

let file;
export function initialize(data) {
  file = data;
}

export async function resolve(specifier, context, next) {
  const isPath = /^(\.|\/|file:)/.test(specifier);
  // The first import has no parent worth naming: it is the package itself, asked for by the measurement.
  if (!isPath && !context.parentURL?.includes("[eval")) appendFileSync(file, `${specifier}\n`);
  return next(specifier, context);
}

export async function load(url, context, next) {
  if (url.startsWith("file:")) appendFileSync(file, `${url}\n`);
  return next(url, context);
}
