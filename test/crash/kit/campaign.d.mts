import type { Problem } from "../check.mjs";

export interface Ground {
  makeFolder(): string;
}

export interface Total {
  deaths: number;
  ackedFacts: number;
  problems: Problem[];
  /** Where the trace and the store were put when there are problems. */
  evidence?: string;
}

export function temporaryFolder(): string;
export function pathIn(folder: string, name: string): string;
export function campaign(options: {
  name: string;
  deaths: number;
  seed: string;
  lane?: number;
  ground?: Ground;
}): Promise<Total>;
