// Servers in processes of their own (child.mjs), on a store that several can share, and what a test asks them.

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished } from "vitest";
import type { BoughEvent } from "../../src/events/index.ts";
import type { Frame } from "../../src/wire/index.ts";
import { type Answer, askAt, LiveStream, until } from "./kit.ts";

export const token = "the-token-of-all-nodes";
const child = fileURLToPath(new URL("./child.mjs", import.meta.url));
const built = fileURLToPath(new URL("../../dist/index.js", import.meta.url));

/** Where the store is; a schema for PostgreSQL. */
export interface Place {
  readonly url: string;
  readonly schema?: string;
}

export class Node {
  readonly name: string;
  readonly url: string;
  readonly #process: ChildProcess;
  readonly #gone: Promise<number | null>;

  private constructor(name: string, url: string, process: ChildProcess, gone: Promise<number | null>) {
    this.name = name;
    this.url = url;
    this.#process = process;
    this.#gone = gone;
  }

  static async start(name: string, place: Place, more: object = {}): Promise<Node> {
    expect(existsSync(built), "these tests run the built package: npm run build first").toBe(true);
    const options = JSON.stringify({ name, token, leaseMs: 700, ...place, ...more });
    const running = spawn(process.execPath, [child, options], { stdio: ["ignore", "pipe", "inherit"] });
    onTestFinished(() => void running.kill("SIGKILL"));
    const gone = new Promise<number | null>((resolve) => running.once("exit", resolve));
    const url = await new Promise<string>((resolve, reject) => {
      createInterface(running.stdout!).once("line", resolve);
      void gone.then((code) => reject(new Error(`The server ended with ${code}.`)));
    });
    return new Node(name, url, running, gone);
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  ask(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    return askAt(this.url, method, path, body, { authorization: `Bearer ${token}`, ...headers });
  }

  async live(path: string): Promise<LiveStream> {
    return new LiveStream(await fetch(this.url + path, { headers: { authorization: `Bearer ${token}` } }));
  }

  /** Resolves with the exit code when the process is gone. */
  end(signal: "SIGKILL" | "SIGTERM"): Promise<number | null> {
    this.#process.kill(signal);
    return this.#gone;
  }
}

export const keptOf = (frames: readonly Frame[]): BoughEvent[] =>
  frames.flatMap((frame) => (frame.type === "event" && frame.event.seq !== undefined ? [frame.event] : []));

export async function logOf(node: Node, path: string): Promise<BoughEvent[]> {
  return (await node.ask("GET", `${path}/events?limit=1000`)).body.events;
}

/** Waits until no turn is open. */
export function settledOn(node: Node, path: string): Promise<unknown> {
  return until(async () => {
    const { status, body } = await node.ask("GET", `${path}/state`);
    return status === 200 && body.openTurn === undefined;
  });
}
