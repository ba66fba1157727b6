import type { ChildProcess } from "node:child_process";

export interface Node {
  readonly child: ChildProcess;
  readonly gone: Promise<void>;
}

export interface Outcome {
  readonly status?: string;
  readonly reason?: string;
  readonly code?: string;
}

export class Cluster {
  readonly failures: string[];
  constructor(options: { url: string; folder: string; leaseMs: number });
  start(number: number, options?: { isNamed?: boolean }): Promise<Node>;
  ask(node: Node, kind: "run" | "interrupt", command: object, timeoutMs: number): Promise<Outcome>;
  end(node: Node, signal: NodeJS.Signals): Promise<void>;
  pause(node: Node): void;
  resume(node: Node): void;
}
