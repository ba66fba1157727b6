/** What a shell expects of a program that Ctrl-C has ended. */
export const interruptedCode = 130;

/** Aborts at the first Ctrl-C (or SIGTERM), so that work stops between two steps; a second one ends the process at once. */
export function interruptSignal(): AbortSignal {
  const controller = new AbortController();
  const stop = () => {
    if (controller.signal.aborted) process.exit(interruptedCode);
    controller.abort();
  };
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  return controller.signal;
}
