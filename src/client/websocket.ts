// The same frames over a WebSocket: one connection that a browser does not count among its six for a host.

import { BoughError } from "../base/errors.ts";
import { type Frame, subprotocol, tokenSubprotocol } from "../wire/frames.ts";
import { RemoteError } from "./errors.ts";
import type { Http } from "./http.ts";
import type { Arrival, LiveQuery, Transport } from "./transport.ts";

/** The part of a WebSocket that the client uses: a browser's, Node's, or one of the package `ws`. */
export interface WebSocketLike {
  close(code?: number, reason?: string): void;
  // biome-ignore lint/suspicious/noExplicitAny: every implementation has event types of its own
  addEventListener(type: any, listener: (event: any) => void): void;
}

/** A WebSocket class, such as a browser's or that of the package `ws`. */
export type WebSocketConstructor = new (url: string, protocols?: string[]) => WebSocketLike;

/** A page can't slow a WebSocket down: what waits longer than this is dropped and asked for again. */
const waitingLimit = 4 * 1024 * 1024;

export function findWebSocket(given: WebSocketConstructor | undefined): WebSocketConstructor {
  const found = given ?? (globalThis as { WebSocket?: WebSocketConstructor }).WebSocket;
  if (found) return found;
  throw new BoughError(
    "dependency_missing",
    "This runtime has no WebSocket: install ws and give its WebSocket to createClient.",
  );
}

export function websocketTransport(
  http: Http,
  scopePath: string,
  WebSocket: WebSocketConstructor,
  wanted: LiveQuery = {},
): Transport {
  return {
    async open(after, signal) {
      const token = await http.token();
      const protocols = [subprotocol, ...(token === undefined ? [] : [tokenSubprotocol + token])];
      const url = http.urlOf(`${scopePath}/ws`, { after, ...wanted }).replace(/^http/, "ws");
      const inbox = new Inbox();
      const socket = new WebSocket(url, protocols);
      signal.addEventListener("abort", () => socket.close(), { once: true });
      if (signal.aborted) socket.close();
      const isOpen = await new Promise<boolean>((resolve) => {
        socket.addEventListener("open", () => resolve(true));
        socket.addEventListener("message", ({ data }: { data: unknown }) => {
          if (!inbox.push(String(data))) socket.close();
        });
        socket.addEventListener("close", () => {
          inbox.end();
          resolve(false);
        });
        // A broken connection is closed right after.
        socket.addEventListener("error", () => {});
      });
      if (!isOpen) throw await whyNot(http, scopePath, signal);
      return inbox;
    },
  };
}

/** A WebSocket does not say why it was refused; the same question over HTTP does. */
async function whyNot(http: Http, scopePath: string, signal: AbortSignal): Promise<unknown> {
  try {
    await http.send("GET", `${scopePath}/state`, { query: { last: 1 }, signal });
  } catch (error) {
    return error;
  }
  return new RemoteError("unreachable", "The WebSocket could not be opened.");
}

/** What came and was not taken yet. */
class Inbox implements AsyncIterable<readonly Arrival[]> {
  #waiting: string[] = [];
  #size = 0;
  #isEnded = false;
  #wake: (() => void) | undefined;

  /** False when there is too much of it: then nothing of it counts, and the cursor says where to go on. */
  push(text: string): boolean {
    if (this.#isEnded) return false;
    this.#waiting.push(text);
    this.#size += text.length;
    if (this.#size > waitingLimit) {
      this.#waiting = [];
      this.end();
    }
    this.#wake?.();
    return !this.#isEnded;
  }

  end(): void {
    this.#isEnded = true;
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<readonly Arrival[]> {
    for (;;) {
      const texts = this.#waiting;
      this.#waiting = [];
      this.#size = 0;
      if (texts.length > 0) yield texts.map((text) => JSON.parse(text) as Frame);
      else if (this.#isEnded) return;
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }
}
