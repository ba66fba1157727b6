// What the page asks for again: when it is looked at, after own actions, and every few seconds while it is visible.

import { useCallback, useEffect, useState } from "react";

export interface Polled<T> {
  readonly value: T | undefined;
  readonly error: unknown;
  refresh(): Promise<void>;
}

export function usePolled<T>(ask: () => Promise<T>, everyMs = 5000): Polled<T> {
  const [state, setState] = useState<{ value?: T; error?: unknown }>({});
  const refresh = useCallback(
    () =>
      ask().then(
        (value) => setState({ value }),
        (error: unknown) => setState((before) => ({ ...before, error })),
      ),
    [ask],
  );
  useEffect(() => {
    void refresh();
    const look = () => document.visibilityState === "visible" && void refresh();
    const timer = setInterval(look, everyMs);
    addEventListener("focus", look);
    return () => {
      clearInterval(timer);
      removeEventListener("focus", look);
    };
  }, [refresh, everyMs]);
  return { value: state.value, error: state.error, refresh };
}
