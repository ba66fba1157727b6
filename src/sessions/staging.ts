// Staging: who has complete turns in hand that wait to be saved. The row of a branch names who staged on it last; that one
// holds them until it saves them, is closed, or its process is gone. Others who look at the branch leave them alone.

import { ownerIsDead } from "../base/owner.ts";

/** Those of this process that staged something and are not closed. */
const open = new Set<string>();
let count = 0;

/** One holder of staged turns: whatever works with one context. */
export class Staging {
  readonly #owner: () => string;
  #number: string | undefined;

  constructor(owner: () => string) {
    this.#owner = owner;
  }

  /** What the row of a branch says of it. */
  get name(): string {
    if (this.#number === undefined) {
      this.#number = `${Math.round(performance.timeOrigin).toString(36)}.${++count}`;
      open.add(this.#number);
    }
    return `${this.#owner()} ${this.#number}`;
  }

  /** From here on nobody here saves what was staged. */
  close(): void {
    if (this.#number !== undefined) open.delete(this.#number);
  }

  /** Whether the one that a row names may still save what it staged. Of another host's process nothing else is known. */
  static isInHand(name: string | undefined, own: string): boolean {
    if (name === undefined) return false;
    const cut = name.lastIndexOf(" ");
    const owner = name.slice(0, cut);
    return owner === own ? open.has(name.slice(cut + 1)) : !ownerIsDead(owner);
  }
}
