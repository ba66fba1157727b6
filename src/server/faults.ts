// Faults: errors that reach the process itself, while it serves.
//   F1. One that a tool call let float (a timer that throws, a promise that nothing awaits) fails the run of that call, or is
//       logged when the run is over. The process, and every other run in it, goes on.
//   F2. Any other ends the process as if nothing listened here, unless the program listens itself.

import { type CallOwner, currentCall, followCalls } from "../runs/index.ts";

type Warn = (message: string, error: unknown) => void;

/** Of each server that listens; the first is told. */
const serving = new Set<{ readonly warn: Warn; readonly stop: () => void }>();

/** Contains floating errors of tools until the function it returns is called. */
export function containFaults(warn: Warn): () => void {
  if (serving.size === 0) process.on("uncaughtException", onFault);
  const own = { warn, stop: followCalls() };
  serving.add(own);
  return () => {
    own.stop();
    serving.delete(own);
    if (serving.size === 0) process.off("uncaughtException", onFault);
  };
}

// Without a listener for them, unhandled rejections come here, too, as far as the process was not told to take them otherwise.
function onFault(error: unknown): void {
  const call = currentCall();
  if (call) contain(call, error);
  else if (process.listenerCount("uncaughtException") === 1) die(error);
}

/** F1. */
function contain(call: CallOwner, error: unknown): void {
  const { toolName, runId, sessionId, branchId } = call;
  const isFailed = call.fail(error);
  const [first] = serving;
  const fate = isFailed ? "its run fails" : "its run was over";
  first?.warn(
    `The tool "${toolName}" threw outside its call; ${fate} (run ${runId}, ${sessionId}/${branchId}):`,
    error,
  );
}

/** F2: thrown where nothing listens any more, it is reported and ends the process as Node does it. */
function die(error: unknown): void {
  process.off("uncaughtException", onFault);
  process.nextTick(() => {
    throw error;
  });
}
