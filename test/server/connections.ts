// Connections of an attacker: raw bytes out, and a count of what the server still holds.

import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { connect, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import type { Given } from "./kit.ts";

/** A request's head, as it goes out. */
export function head(line: string, headers: readonly string[] = []): string {
  return [`${line} HTTP/1.1`, "host: localhost", ...headers, "", ""].join("\r\n");
}

export const bearer = (g: Given) => `authorization: Bearer ${g.server.token}`;
export const webSocket = [
  "connection: Upgrade",
  "upgrade: websocket",
  "sec-websocket-version: 13",
  "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
];

/** A connection that is never closed from this side before the test is over. */
export class Holding {
  readonly socket: Socket;
  told = "";
  /** Whether the server has ended it: nothing more comes. */
  isEnded = false;

  constructor(port: number, bytes: string, { reads = true } = {}) {
    this.socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true }, () => this.socket.write(bytes));
    this.socket.on("error", () => this.#end());
    this.socket.on("end", () => this.#end());
    this.socket.on("close", () => this.#end());
    if (reads) {
      this.socket.on("data", (data) => {
        this.told += data;
      });
    } else this.socket.pause();
    onTestFinished(() => void this.socket.destroy());
  }

  get status(): number {
    return Number(/^HTTP\/1\.1 (\d+)/.exec(this.told)?.[1] ?? 0);
  }

  #end(): void {
    this.isEnded = true;
  }
}

/** Connections to a server of this process, from its side. To be made before the server gets any. */
export class Accepted {
  readonly #all: { readonly socket: Socket; readonly port: number | undefined }[] = [];

  constructor() {
    const seen = (message: unknown) => {
      const { socket } = message as { socket: Socket };
      this.#all.push({ socket, port: socket.localPort });
    };
    subscribe("net.server.socket", seen);
    onTestFinished(() => void unsubscribe("net.server.socket", seen));
  }

  /** All there ever were. */
  count(g: Given): number {
    return this.#of(g).length;
  }

  /** Those that the server still holds. */
  held(g: Given): number {
    return this.#of(g).filter((socket) => !socket.destroyed).length;
  }

  #of({ serving }: Given): Socket[] {
    return this.#all.flatMap(({ socket, port }) => (port === serving.port ? [socket] : []));
  }
}
