export interface Write {
  do: string;
  sessionId: string;
  branchId?: string;
  /** Of an append that takes the run slot. */
  claim?: { runId: string };
  /** Of a write by the holder of the run slot. */
  epoch?: number;
  ok?: { epoch?: number; released?: boolean };
  /** Of a fork. */
  parent?: { branchId: string; seq: number };
  line: number;
  end: number;
  status: "acked" | "refused" | "unknown";
}

export interface History {
  readonly writes: readonly Write[];
  /** The writes and what else was told, in that order. */
  readonly entries: readonly Write[];
  readonly ackedFacts: number;
  /** The store's own failures, in the order they were told. */
  readonly refusals: readonly { code: string; message: string; do: string; line: number; end: number }[];
}
