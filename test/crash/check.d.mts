import type { StoreSnapshot } from "../../src/testing/index.ts";
import type { History } from "./kit/history.mjs";

export interface Problem {
  kind: "lost" | "half" | "unintended" | "wrong" | "broken";
  text: string;
}

export const emptySnapshot: StoreSnapshot;

export function checkStore(options: {
  name: string;
  path: string;
  clock: object;
  baseline: StoreSnapshot;
  history: History;
}): Promise<{ problems: Problem[]; snapshot?: StoreSnapshot }>;
