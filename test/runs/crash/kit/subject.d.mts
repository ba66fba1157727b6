import type { ChildProcess } from "node:child_process";

export interface Call {
  tool: string;
  ms?: number;
}

export type Play = { batches: Call[][]; answer: string }[];

export interface LifeOptions {
  env?: Record<string, string>;
  recovers?: boolean;
  onStart?: (child: ChildProcess) => void;
}

export function makeStore(name: string, path: string): Promise<void>;

export class Subject {
  readonly facts: number;
  constructor(options: { store: string; path: string; effects: string; play: Play; settles?: boolean });
  live(options?: LifeOptions): Promise<{ signal: NodeJS.Signals | null; failure: string | undefined }>;
  finish(options?: { recovers?: boolean }): Promise<string[]>;
}
