// How an agent shows the events that its program defined: under their own types, to subscribers and readers.

import type { OwnEventDefinition, OwnEventTable } from "../events/index.ts";
import { presentOwn } from "../events/present-own.ts";
import type { Hub, Subscriber } from "../live/index.ts";
import type { EventPage } from "../sessions/index.ts";

/** Subscribes to a type: an own one travels as an unknown fact or as `custom-emit`. */
export function subscribeOwn(hub: Hub, table: OwnEventTable, type: string, handler: Subscriber): () => void {
  if (table.size === 0) return hub.subscribe(type, handler);
  const own = table.get(type);
  const source = own ? (own.kept ? `unknown:${type}` : "custom-emit") : type;
  return hub.subscribe(source, (event) => {
    const shown = presentOwn(table, event);
    if (type === "*" || shown.type === type) return handler(shown);
  });
}

/** A page with its own events under their types. */
export function presentPage(table: OwnEventTable, page: EventPage): EventPage {
  for (const [i, fact] of page.entries()) page[i] = presentOwn(table, fact);
  return page;
}

/** Options with the events of what serves the agent before the agent's own; a definition that both have counts once. */
export function withEvents<Options extends { readonly events?: readonly OwnEventDefinition[] }>(
  options: Options,
  shared: readonly OwnEventDefinition[] = [],
): Options {
  const { events: own = [] } = options;
  // What is no list is refused by the agent, which says what is wrong with it.
  if (shared.length === 0 || !Array.isArray(own)) return options;
  return { ...options, events: [...new Set([...shared, ...own])] };
}
