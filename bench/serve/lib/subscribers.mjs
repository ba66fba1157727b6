// Readers of server-sent events on plain sockets, the same for every server. They count the events that are complete, and
// can look for one; that is the least a reader does, so that what is measured is the server.

import { connect } from "node:net";

/** An event ends with its JSON and an empty line; comments don't. */
const endOfEvent = Buffer.from("}\n\n");

export class Subscriber {
  #socket;
  /** The beginning of an event whose end has not come. */
  #tail = Buffer.alloc(0);
  #seen = () => {};
  #failed = () => {};
  events = 0;

  /** Resolves when the server has told that it is ready. */
  async open({ port, headers }, path) {
    this.#socket = connect(port, "127.0.0.1");
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    this.#socket.write(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n${lines.join("")}\r\n`);
    const head = this.until((piece) => piece.includes('"type":"ready"'));
    this.#socket.on("error", (error) => this.#failed(error));
    this.#socket.on("close", () => this.#failed(new Error("a subscriber was disconnected")));
    this.#socket.on("data", (piece) => this.#take(piece));
    await head;
    this.events = 0;
  }

  /** Resolves with the first events that fit; they come as whole ones, each once. */
  until(fits) {
    return new Promise((resolve, reject) => {
      this.#failed = reject;
      this.#seen = (piece) => {
        if (fits(piece)) resolve(piece);
      };
    });
  }

  /** Resolves when so many events have come since it was opened. */
  untilEvents(count) {
    return this.until(() => this.events >= count);
  }

  /** Takes nothing more. */
  stall() {
    this.#socket.pause();
  }

  close() {
    this.#failed = () => {};
    this.#socket.destroy();
  }

  #take(piece) {
    const bytes = this.#tail.length > 0 ? Buffer.concat([this.#tail, piece]) : piece;
    let from = 0;
    for (let at = bytes.indexOf(endOfEvent); at >= 0; at = bytes.indexOf(endOfEvent, from)) {
      this.events++;
      from = at + endOfEvent.length;
    }
    this.#tail = bytes.subarray(from);
    if (from > 0) this.#seen(bytes.subarray(0, from));
  }
}

/** So many subscribers, opened a few at a time. */
export async function subscribe(served, pathOf, count) {
  const subscribers = [];
  while (subscribers.length < count) {
    const few = Array.from({ length: Math.min(50, count - subscribers.length) }, () => new Subscriber());
    await Promise.all(few.map((each, i) => each.open(served, pathOf(subscribers.length + i))));
    subscribers.push(...few);
  }
  return subscribers;
}
