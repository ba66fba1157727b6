import type { History } from "./history.mjs";

export const lastBatch: number;
export function makeScenario(options: {
  name: string;
  path: string;
  midway?: (path: string) => void;
}): Promise<{ history: History; clock: object }>;
