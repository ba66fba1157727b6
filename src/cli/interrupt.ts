/** The exit code that shells expect after Ctrl-C. */
export const interruptedCode = 130;

/** npm forwards the Ctrl-C that the terminal has already sent; a signal that soon does not count as a second one. */
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
  if (process.env.npm_lifecycle_event) whenOrphaned(stop);
  return controller.signal;
}

const lookEveryMs = 500;

/** When npm is stopped, it stops the shell it started, which forwards no signal: the shell's exit is the sign. */
function whenOrphaned(stop: () => void): void {
  const parent = process.ppid;
  const look = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(look);
    stop();
  }, lookEveryMs);
  look.unref();
}
