// What changes on the server, told to whoever shows it: one connection for the page, and none while nobody looks at it. Browsers
// allow few connections to a server, and all tabs share them.

import { createContext, type ReactNode, useContext, useEffect, useRef, useState } from "react";
import { type Change, useChanges } from "./bough.ts";
import { useClient } from "./session.tsx";

/** Without a change, anything may have changed. */
type Listener = (change: Change | undefined) => void;

const Listeners = createContext<Set<Listener>>(new Set());

export function FeedProvider({ children }: { children: ReactNode }) {
  const client = useClient();
  const [listeners] = useState(() => new Set<Listener>());
  const isVisible = useVisibility();
  const tell = (change?: Change) => {
    for (const listener of listeners) listener(change);
  };
  useChanges(client, { isEnabled: isVisible, onChange: tell, onStale: () => tell() });
  return <Listeners.Provider value={listeners}>{children}</Listeners.Provider>;
}

/** Calls the latest render's listener, once for changes that come together. */
export function useFeed(isWanted: (change: Change) => boolean, onChange: () => void): void {
  const listeners = useContext(Listeners);
  const latest = useRef({ isWanted, onChange });
  useEffect(() => {
    latest.current = { isWanted, onChange };
  });
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const listen: Listener = (change) => {
      if (change && !latest.current.isWanted(change)) return;
      timer ??= setTimeout(() => {
        timer = undefined;
        latest.current.onChange();
      }, togetherMs);
    };
    listeners.add(listen);
    return () => {
      listeners.delete(listen);
      clearTimeout(timer);
    };
  }, [listeners]);
}

const togetherMs = 150;

function useVisibility(): boolean {
  const [isVisible, setVisible] = useState(() => document.visibilityState === "visible");
  useEffect(() => {
    const look = () => setVisible(document.visibilityState === "visible");
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, []);
  return isVisible;
}
