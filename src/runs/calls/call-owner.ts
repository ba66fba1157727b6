// Which tool call an error belongs to that the call itself can't catch: one thrown by a timer, or by a promise that nothing
// awaits. Followed only while a process asks for it (`followCalls`), since following costs every promise a little.

import type { AsyncLocalStorage } from "node:async_hooks";
import { nodeModule } from "../../base/node.ts";

/** A tool call, for code that finds an error it caused. */
export interface CallOwner {
  readonly toolName: string;
  readonly callId: string;
  readonly runId: string;
  readonly sessionId: string;
  readonly branchId: string;
  /** Fails the run; false when the run is over. */
  fail(error: unknown): boolean;
}

let owners: AsyncLocalStorage<CallOwner> | undefined;
let followers = 0;

/** From now on, what a tool call begins is known to be its, until the function it returns is called. */
export function followCalls(): () => void {
  followers++;
  const hooks = nodeModule<typeof import("node:async_hooks")>("node:async_hooks");
  owners ??= hooks && new hooks.AsyncLocalStorage();
  let isOver = false;
  return () => {
    if (isOver) return;
    isOver = true;
    if (--followers > 0) return;
    owners?.disable();
    owners = undefined;
  };
}

/** The call that the code at work now was begun by. */
export function currentCall(): CallOwner | undefined {
  return owners?.getStore();
}

/** Does work in the name of a call. */
export function inCall<T>(owner: () => CallOwner, work: () => T): T {
  return owners ? owners.run(owner(), work) : work();
}
