// Faults: uncaught errors of the process while it serves.
//   Faults-1. One that a tool call let float (a timer that throws, a promise that nothing awaits) fails the run of that call, or is
//       logged when the run is over. The process, and every other run in it, continues.
//   Faults-2. Any other error ends the process as it would without this listener, unless the program has its own.

import { type CallOwner, currentCall, followCalls } from "../runs/index.ts";

type Warn = (message: string, error: unknown) => void;

/** The loggers of listening servers; the first one is used. */
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

// Unhandled rejections arrive here, too, unless the process is configured otherwise or has a listener for them.
function onFault(error: unknown): void {
  const call = currentCall();
  if (call) contain(call, error);
  else if (process.listenerCount("uncaughtException") === 1) die(error);
}

/** Faults-1. */
function contain(call: CallOwner, error: unknown): void {
  const { toolName, runId, sessionId, branchId } = call;
  const isFailed = call.fail(error);
  const [first] = serving;
  const fate = isFailed ? "its run fails" : "its run had ended";
  first?.warn(
    `The tool "${toolName}" threw an error outside its call; ${fate} (run ${runId}, ${sessionId}/${branchId}):`,
    error,
  );
}

/** Faults-2: rethrown without a listener, so that Node reports it and ends the process as usual. */
function die(error: unknown): void {
  process.off("uncaughtException", onFault);
  process.nextTick(() => {
    throw error;
  });
}
