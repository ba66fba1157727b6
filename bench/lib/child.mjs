// A process that does what it is asked for, call by call: `startChild` on this side, `answerCalls` on the other.

import { fork } from "node:child_process";

/**
 * Starts a program whose methods can be called. `stop` ends it and waits for that.
 *
 * @param {string} program
 * @param {{ name: string } & import("node:child_process").ForkOptions} options  `name` for what goes wrong
 */
export function startChild(program, { name, ...options }) {
  const child = fork(program, [], options);
  const waiting = new Map();
  let sent = 0;
  child.on("message", ({ id, result, error }) => {
    const { resolve, reject } = waiting.get(id);
    waiting.delete(id);
    if (error) reject(new Error(error));
    else resolve(result);
  });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  ended.then((code) => {
    for (const { reject } of waiting.values()) reject(new Error(`the process of ${name} ended with ${code}`));
  });
  return {
    call: (method, options = {}) =>
      new Promise((resolve, reject) => {
        const id = ++sent;
        waiting.set(id, { resolve, reject });
        child.send({ id, method, options });
      }),
    stop: async () => {
      if (child.connected) child.disconnect();
      await ended;
    },
  };
}

/** Answers the calls of the process that started this one, and ends with it. */
export function answerCalls(methods) {
  process.on("message", async ({ id, method, options }) => {
    try {
      process.send({ id, result: await methods[method](options) });
    } catch (error) {
      if (process.env.BENCH_DEBUG) console.error(error);
      process.send({ id, error: String(error?.message ?? error) });
    }
  });
  process.on("disconnect", () => process.exit(0));
}
