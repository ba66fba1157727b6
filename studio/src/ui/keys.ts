// Keys: single letters act only when nobody types, and never with a modifier.

import { useEffect, useRef } from "react";

export type Keys = Readonly<Record<string, (event: KeyboardEvent) => void>>;

/** `"k"`, `"?"`, `"ctrl+k"`, `"g s"` (one after the other). The latest render's keys hold. */
export function useKeys(keys: Keys): void {
  const latest = useRef(keys);
  useEffect(() => {
    latest.current = keys;
  });
  useEffect(() => {
    let first = "";
    let firstAt = 0;
    const press = (event: KeyboardEvent) => {
      const isCommand = event.ctrlKey || event.metaKey;
      const name = isCommand ? `ctrl+${event.key.toLowerCase()}` : event.key;
      if (!isCommand && (event.altKey || isTyping(event.target))) return;
      const sequence = event.timeStamp - firstAt < 1000 ? `${first} ${name}` : name;
      const act = latest.current[sequence] ?? latest.current[name];
      first = name;
      firstAt = event.timeStamp;
      if (!act) return;
      event.preventDefault();
      act(event);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  const isField = target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
  return isField || target.closest("dialog") !== null;
}
