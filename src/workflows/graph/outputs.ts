// Outputs: what the nodes of an execution have given, and what each node sees of it.
//   Outputs-1. A node sees the nodes that lead to it: by edges that go on, as they are in its round; by edges back, as they were
//       when its round began. So what it sees does not depend on who was faster, unless a join takes the first.

import type { GraphValues } from "./definition.ts";
import { nodesAbove, nodesBefore, type Shape } from "./shape.ts";

export class Outputs {
  readonly #shape: Shape;
  readonly #input: unknown;
  readonly #now = new Map<string, unknown>();
  /** What there was when the present round of a node began. */
  readonly #before = new Map<string, ReadonlyMap<string, unknown>>();
  readonly #seen = new Map<string, { readonly above: ReadonlySet<string>; readonly before: ReadonlySet<string> }>();

  constructor(shape: Shape, input: unknown) {
    this.#shape = shape;
    this.#input = input;
  }

  set(id: string, output: unknown): void {
    this.#now.set(id, output);
  }

  get(id: string): unknown {
    return this.#now.get(id);
  }

  /** Nodes begin again. */
  beginRound(ids: readonly string[]): void {
    const before = new Map(this.#now);
    for (const id of ids) {
      this.#before.set(id, before);
      this.#now.delete(id);
    }
  }

  /** What a node sees (Outputs-1). */
  seenBy(id: string): GraphValues {
    const { above, before } = this.#nodesSeenBy(id);
    const outputs: Record<string, unknown> = {};
    for (const each of before) {
      const from = above.has(each) ? this.#now : this.#before.get(id);
      if (from?.has(each)) outputs[each] = from.get(each);
    }
    return { input: this.#input, outputs };
  }

  /** Everything that there is. */
  all(): GraphValues {
    return { input: this.#input, outputs: Object.fromEntries(this.#now) };
  }

  #nodesSeenBy(id: string) {
    let seen = this.#seen.get(id);
    if (!seen) {
      seen = { above: nodesAbove(this.#shape, id), before: nodesBefore(this.#shape, id) };
      this.#seen.set(id, seen);
    }
    return seen;
  }
}
