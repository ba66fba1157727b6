// One connection to the server: sends commands, and repeats those that may be repeated when the connection breaks.
//
//   RedisConnection-1. What certainly did not run (not sent, refused because the server is loading or busy) is sent again.
//   RedisConnection-2. What may have run is sent again only if a second run changes nothing and answers the same (Script.repeatable).
//   RedisConnection-3. Both only for `patienceMs`, and not while the store closes; then the caller gets the error.

import type { Clock } from "../../base/clock.ts";
import type { Argument, RedisClient } from "./client.ts";
import { explain, isLost, isPassing, isUnsent, wordOf } from "./faults.ts";
import { indexKey, sessionKey } from "./keys.ts";
import type { Script } from "./script.ts";

/** How long a server that is away is waited for, counted from the call. */
const patienceMs = 10_000;
const firstPauseMs = 10;
const longestPauseMs = 250;

/** Bulk answers as bytes instead of text. */
const asBytes = { typeMapping: { 36: Buffer } };

/** What a script answers: a word, then what belongs to it. */
export type Answer = readonly [word: string, ...rest: readonly string[]];

type Given = Argument | number | boolean | undefined;

/** What runs scripts on sessions. */
export interface Runner {
  /** Numbers cross as text, what is missing or false as an empty one. */
  run<T = Answer>(script: Script, sessionId: string, args: readonly Given[], options?: { bytes?: boolean }): Promise<T>;
}

export class Connection implements Runner {
  readonly client: RedisClient;
  readonly prefix: string;
  readonly #clock: Clock | undefined;
  #isPatient = true;

  /** `clock` stands in for the server's own. */
  constructor(client: RedisClient, options: { prefix: string; clock: Clock | undefined }) {
    this.client = client;
    this.prefix = options.prefix;
    this.#clock = options.clock;
  }

  /** A plain command that reads, or that may be given twice. */
  async command<T>(...args: Argument[]): Promise<T> {
    try {
      return (await this.#send(args, true, false)) as T;
    } catch (error) {
      throw explain(error);
    }
  }

  run<T = Answer>(
    script: Script,
    sessionId: string,
    args: readonly Given[],
    options: { bytes?: boolean } = {},
  ): Promise<T> {
    return this.#run(script, sessionKey(this.prefix, sessionId), args, options.bytes ?? false) as Promise<T>;
  }

  /** Runs a script on the index. */
  runOnIndex<T = Answer>(script: Script, args: readonly Given[]): Promise<T> {
    return this.#run(script, indexKey(this.prefix), args, false) as Promise<T>;
  }

  /** From now on nothing is sent a second time. */
  hurry(): void {
    this.#isPatient = false;
  }

  close(): void {
    this.hurry();
    this.client.destroy();
  }

  async #run(script: Script, root: string, args: readonly Given[], bytes: boolean): Promise<unknown> {
    const given = ["1", root, toArgument(this.#clock?.now()), ...args.map(toArgument)];
    try {
      try {
        return await this.#send(["EVALSHA", script.sha, ...given], script.repeatable, bytes);
      } catch (error) {
        // The server does not know the script (yet, or after a restart or a flush); nothing ran.
        if (wordOf(error) !== "NOSCRIPT") throw error;
        return await this.#send(["EVAL", script.text, ...given], script.repeatable, bytes);
      }
    } catch (error) {
      throw explain(error);
    }
  }

  async #send(args: readonly Argument[], repeatable: boolean, bytes: boolean): Promise<unknown> {
    const start = performance.now();
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
      try {
        return await this.client.sendCommand(args, bytes ? asBytes : undefined);
      } catch (error) {
        const again = isUnsent(error) || isPassing(error) || (repeatable && isLost(error));
        if (!again || !this.#isPatient || performance.now() - start > patienceMs) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }
}

function toArgument(given: Given): Argument {
  if (typeof given === "object") return given;
  return given === undefined || given === false ? "" : String(given);
}
