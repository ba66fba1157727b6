import type { Fault } from "./proxy.mjs";

export function campaign(options: {
  url: string;
  /** Where the nodes find the store (default `url`): a place where faults happen. */
  nodeUrl?: string;
  faults?: Readonly<Record<string, Fault>>;
  /** Where their notes go. */
  folder: string;
  seed: string;
  ms: number;
  /** The library by which clocks are set. */
  faketime?: string;
}): Promise<{ problems: string[]; counts: Record<string, number> }>;
