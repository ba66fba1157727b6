// What a store with a bug would leave behind, done by hand to a copy of the scenario (scenario.mjs).

/** Damages the store at `path`; `midway` is how it was before the last things happened. */
export type Damage = (store: { path: string; midway: string }) => void;

export interface Damaged {
  damage: Damage;
  /** One of the sentences that the checker has to say. */
  seen: RegExp;
}
