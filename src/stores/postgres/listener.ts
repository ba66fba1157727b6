// Listener: the one connection of a handle that listens, for all that want to hear something. It is made when it is first
// needed; one that ended is made again by the next caller.

import type { Database } from "./database.ts";

export class Listener {
  readonly #database: Database;
  readonly #ears = new Map<string, (payload: string) => void>();
  /** Resolves with how to let go of the connection. */
  #connecting: Promise<() => void> | undefined;
  #isClosed = false;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Who hears a channel; said before the connection is needed. */
  on(channel: string, hear: (payload: string) => void): void {
    this.#ears.set(channel, hear);
  }

  /** Resolves when it listens, or can't. */
  async ready(): Promise<void> {
    if (this.#isClosed) return;
    this.#connecting ??= this.#connect();
    await this.#connecting;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    (await this.#connecting)?.();
  }

  async #connect(): Promise<() => void> {
    let letGo = () => {};
    try {
      const client = await this.#database.connect();
      if (!client) return letGo;
      letGo = once(() => client.release(true));
      (client as { unref?(): void }).unref?.();
      client.on("notification", ({ channel, payload }: { channel: string; payload?: string }) => {
        this.#ears.get(channel)?.(payload ?? "");
      });
      client.on("end", () => this.#lose(letGo));
      for (const channel of this.#ears.keys()) await client.query(`LISTEN "${channel}"`);
    } catch {
      this.#lose(letGo);
    }
    return letGo;
  }

  #lose(letGo: () => void): void {
    this.#connecting = undefined;
    letGo();
  }
}

function once(work: () => void): () => void {
  let done = false;
  return () => {
    if (done) return;
    done = true;
    work();
  };
}
