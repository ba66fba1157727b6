export interface Write {
  do: string;
  line: number;
  end: number;
  status: "acked" | "refused" | "unknown";
}

export interface History {
  readonly writes: readonly Write[];
  readonly ackedFacts: number;
  /** The store's own failures, in the order they were told. */
  readonly refusals: readonly { code: string; message: string; do: string; line: number }[];
}
