/** What a shell expects of a program that Ctrl-C has ended. */
export const interruptedCode = 130;

/** npm passes on the Ctrl-C that the terminal has sent already; what comes so soon is no second one. */
const sameMs = 500;

/** Aborts at the first Ctrl-C (or SIGTERM), so that work stops between two steps; a second one ends the process at once. */
export function interruptSignal(): AbortSignal {
  const controller = new AbortController();
  let first = 0;
  const stop = () => {
    if (!controller.signal.aborted) {
      first = performance.now();
      controller.abort();
    } else if (performance.now() - first > sameMs) process.exit(interruptedCode);
  };
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  return controller.signal;
}
