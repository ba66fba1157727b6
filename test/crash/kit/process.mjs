// One writer as a process: started, listened to, and gone at the end.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { hostTime } from "./stores.mjs";

const writer = fileURLToPath(new URL("../writer.mjs", import.meta.url));

/** Writers that run; none outlives this process. */
const alive = new Set();
process.once("exit", () => {
  for (const child of alive) child.kill("SIGKILL");
});

/**
 * Runs a writer on the store `store` at `path` until it ends or dies. `ops` bounds its work; `openOnly` leaves it out;
 * `onFirstAck(child)` is called once, to arrange its death; `env` arms failpoints; `prefix` is a command that runs it.
 * Returns how it ended, { signal, code, wasClosed, failure }, and what it told (`lines`), its end included.
 */
export async function runWriter({ env = {}, prefix = [], onFirstAck = async () => {}, ...options }) {
  const [command, ...args] = [...prefix, process.execPath, writer, ...argumentsOf(options)];
  const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  const ended = endOf(child);
  const lines = [];
  let death;
  for await (const line of createInterface({ input: child.stdout })) {
    const told = parse(line);
    if (!told) continue;
    lines.push(told);
    if (told.ok) death ??= onFirstAck(child).catch((error) => killFor(child, error));
  }
  const trouble = await death;
  if (trouble) throw trouble;
  const { code, signal, stderr } = await ended;
  lines.push({ died: signal ?? code, t: hostTime() });
  const wasClosed = lines.some(({ closed }) => closed);
  const failure = lines.find(({ failed }) => failed);
  const silence = { failed: `exit ${code}`, message: stderr.trim() };
  return { code, signal, wasClosed, lines, failure: failure ?? (signal === null && !wasClosed ? silence : undefined) };
}

function argumentsOf({ store, path, seed, ahead, shared, ops, openOnly }) {
  return [
    ...["--store", store, "--path", path, "--seed", seed, "--ahead", String(ahead)],
    ...(ops === undefined ? [] : ["--ops", String(ops)]),
    ...(shared ? ["--shared"] : []),
    ...(openOnly ? ["--open-only"] : []),
  ];
}

/** Its death could not be arranged as planned. */
function killFor(child, error) {
  child.kill("SIGKILL");
  return error;
}

function endOf(child) {
  alive.add(child);
  let stderr = "";
  child.stderr.on("data", (data) => {
    stderr += data;
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => {
      alive.delete(child);
      resolve({ code, signal, stderr });
    });
  });
}

/** The last line of a killed process may be cut off; then nothing it speaks of was begun. */
function parse(line) {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
