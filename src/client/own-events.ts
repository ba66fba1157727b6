// Own events over HTTP. The server sends a kept one as a kind it does not know, so only a client with its definition reads it.

import type { OwnEventDefinition } from "../events/index.ts";
import { ownEventTable, presentOwn } from "../events/present-own.ts";

/** Shows events and facts under their own types, as far as there are definitions for them. */
export function presenter(
  definitions: readonly OwnEventDefinition[] = [],
): <E extends { readonly type: string }>(event: E) => E {
  const table = ownEventTable(definitions);
  return (event) => presentOwn(table, event);
}
