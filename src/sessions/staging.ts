// Staging: which holder may still save staged turns. The row of a branch names the last holder that staged on it; that one
// may save them until it is closed or its process is gone. Others that load the branch leave them alone.

import { ownerIsDead } from "../base/owner.ts";

/** The holders of this process that staged something and are not closed. */
const open = new Set<string>();
let count = 0;

/** One holder of staged turns: whatever works with one context. */
export class Staging {
  readonly #owner: () => string;
  #number: string | undefined;

  constructor(owner: () => string) {
    this.#owner = owner;
  }

  /** The holder's name in the row of a branch. */
  get name(): string {
    if (this.#number === undefined) {
      this.#number = `${Math.round(performance.timeOrigin).toString(36)}.${++count}`;
      open.add(this.#number);
    }
    return `${this.#owner()} ${this.#number}`;
  }

  /** Ends the holder: others may discard its staged turns. */
  close(): void {
    if (this.#number !== undefined) open.delete(this.#number);
  }

  /** Whether the holder that a row names may still save what it staged. A process of another host counts as alive. */
  static isInHand(name: string | undefined, own: string): boolean {
    if (name === undefined) return false;
    const cut = name.lastIndexOf(" ");
    const owner = name.slice(0, cut);
    return owner === own ? open.has(name.slice(cut + 1)) : !ownerIsDead(owner);
  }
}
