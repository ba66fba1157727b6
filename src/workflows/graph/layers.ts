// Layers, for screens: a layer begins with its first node and ends when none of its nodes waits or works. Execution does not wait
// for layers.

import type { Shape } from "./shape.ts";

export interface LayerChange {
  readonly type: "layer-start" | "layer-end";
  readonly layer: number;
}

export class LayerWatch {
  readonly #layers: ReadonlyMap<string, number>;
  readonly #isOpen: (id: string) => boolean;
  readonly #members = new Map<number, string[]>();
  readonly #active = new Set<number>();

  constructor({ layers, nodeIds }: Pick<Shape, "layers" | "nodeIds">, isOpen: (id: string) => boolean) {
    this.#layers = layers;
    this.#isOpen = isOpen;
    for (const id of nodeIds) {
      const layer = layers.get(id)!;
      this.#members.set(layer, [...(this.#members.get(layer) ?? []), id]);
    }
  }

  /** What changed since the last look; `started` are the nodes that have started since. */
  look(started: readonly string[]): LayerChange[] {
    const changes: LayerChange[] = [];
    const begun = new Set(started.map((id) => this.#layers.get(id)!));
    for (const layer of this.#active) {
      if (this.#members.get(layer)!.some(this.#isOpen)) continue;
      this.#active.delete(layer);
      changes.push({ type: "layer-end", layer });
    }
    for (const layer of [...begun].sort((a, b) => a - b)) {
      if (this.#active.has(layer)) continue;
      this.#active.add(layer);
      changes.push({ type: "layer-start", layer });
    }
    return changes;
  }
}
