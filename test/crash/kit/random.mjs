// Chance that can be replayed: everything random in a campaign comes from one seed.

export class Random {
  #state;
  #seed;

  constructor(seed) {
    this.#seed = String(seed);
    this.#state = hash(this.#seed);
  }

  /** A number from 0 up to, not including, 1. */
  next() {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  }

  /** An integer from 0 up to, not including, `below`. */
  int(below) {
    return Math.floor(this.next() * below);
  }

  chance(probability) {
    return this.next() < probability;
  }

  pick(list) {
    return list[this.int(list.length)];
  }

  /** One of [[weight, value], …]. */
  weighted(entries) {
    let left = this.next() * entries.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, value] of entries) {
      left -= weight;
      if (left < 0) return value;
    }
    return entries.at(-1)[1];
  }

  /** A generator of its own, the same for the same label. */
  branch(label) {
    return new Random(`${this.#seed}/${label}`);
  }
}

function hash(text) {
  let h = 1779033703 ^ text.length;
  for (let i = 0; i < text.length; i++) {
    h = Math.imul(h ^ text.charCodeAt(i), 3432918353);
    h = (h << 13) | (h >>> 19);
  }
  return Math.imul(h ^ (h >>> 16), 2246822507) | 0;
}
