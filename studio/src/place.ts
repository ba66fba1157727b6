// The place: what the page shows. It is the part of the address behind the `#`, so every view is a link, one page serves them all,
// and no request carries it.

import { useSyncExternalStore } from "react";

export type Pane = "branches" | "log" | "model" | "files" | "info";

export interface Place {
  readonly view: "sessions" | "inbox" | "agents" | "settings" | "branch";
  readonly session?: string;
  readonly branch?: string;
  /** The position of the log that is shown, instead of now. */
  readonly at?: number;
  /** The branch that this one is compared with. */
  readonly with?: string;
  readonly pane?: Pane;
  /** The message that is scrolled to and marked. */
  readonly message?: string;
  readonly agent?: string;
}

const panes: readonly string[] = ["branches", "log", "model", "files", "info"];

export function parsePlace(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [first, second, third] = path.split("/").map(decode);
  const params = new URLSearchParams(query);
  if (first === "inbox" || first === "settings") return { view: first };
  if (first === "agents") return { view: "agents", ...(second && { agent: second }) };
  if (first !== "s" || !second) return { view: "sessions" };
  const at = Number(params.get("at") ?? Number.NaN);
  const pane = params.get("pane") ?? "";
  const other = params.get("with");
  const message = params.get("m");
  return {
    view: "branch",
    session: second,
    ...(third && { branch: third }),
    ...(Number.isInteger(at) && at > 0 && { at }),
    ...(other && { with: other }),
    ...(panes.includes(pane) && { pane: pane as Pane }),
    ...(message && { message }),
  };
}

export function linkTo(place: Place): string {
  if (place.view === "agents") return place.agent ? `#/agents/${encodeURIComponent(place.agent)}` : "#/agents";
  if (place.view !== "branch") return place.view === "sessions" ? "#/" : `#/${place.view}`;
  const path = [place.session, place.branch].filter((part) => part !== undefined).map(encodeURIComponent);
  const params = new URLSearchParams();
  if (place.at !== undefined) params.set("at", String(place.at));
  if (place.with !== undefined) params.set("with", place.with);
  if (place.pane !== undefined) params.set("pane", place.pane);
  if (place.message !== undefined) params.set("m", place.message);
  const query = params.size > 0 ? `?${params}` : "";
  return `#/s/${path.join("/")}${query}`;
}

/** Goes to another place; what `undefined` is given for is left out. Scrubbing replaces the entry in the history. */
export function go(place: Place, { replace = false } = {}): void {
  const link = linkTo(place);
  if (link === location.hash) return;
  if (replace) history.replaceState(null, "", link);
  else history.pushState(null, "", link);
  for (const listener of listeners) listener();
}

/** The place without what belongs to another branch: its position, its comparison, its message. */
export function branchPlace(session: string, branch: string | undefined, pane?: Pane): Place {
  return { view: "branch", session, ...(branch && { branch }), ...(pane && { pane }) };
}

const listeners = new Set<() => void>();
addEventListener("hashchange", () => {
  for (const listener of listeners) listener();
});
addEventListener("popstate", () => {
  for (const listener of listeners) listener();
});

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

let known: { hash: string; place: Place } | undefined;

function current(): Place {
  const { hash } = location;
  if (known?.hash !== hash) known = { hash, place: parsePlace(hash) };
  return known.place;
}

export function usePlace(): Place {
  return useSyncExternalStore(subscribe, current);
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
