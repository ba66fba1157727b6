import type { Problem } from "../check.mjs";
import type { History } from "./history.mjs";

export interface WriteOptions {
  ops?: number;
  env?: Record<string, string>;
  prefix?: string[];
  openOnly?: boolean;
  onFirstAck?: (child: import("node:child_process").ChildProcess) => Promise<void>;
  mayFail?: boolean;
}

export interface WriterEnd {
  code: number | null;
  signal: NodeJS.Signals | null;
  wasClosed: boolean;
  failure?: { failed: string; message: string };
}

export class Subject {
  history: History;
  readonly ackedFacts: number;
  constructor(options: { name: string; path: string; seed: string });
  write(options?: WriteOptions): Promise<WriterEnd>;
  check(options?: { finish?: () => boolean }): Promise<Problem[]>;
}
