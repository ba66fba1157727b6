// Showing own events under their own types. Apart from their definition, so that a page that reads them loads no validator.

import { BoughError } from "../base/errors.ts";
import type { Json } from "../base/json.ts";
import type { UnknownFact } from "./codec.ts";
import type { BoughEvent } from "./envelope.ts";
import type { OwnEventDefinition } from "./own-events.ts";

const unknownPrefix = "unknown:";

/** Own events by type. */
export type OwnEventTable = ReadonlyMap<string, OwnEventDefinition>;

/** Refuses two definitions of one type. */
export function ownEventTable(definitions: readonly OwnEventDefinition[] = []): OwnEventTable {
  const table = new Map<string, OwnEventDefinition>();
  for (const definition of definitions) {
    if (table.has(definition.type)) {
      throw new BoughError("invalid_argument", `The event "${definition.type}" is defined twice.`);
    }
    table.set(definition.type, definition);
  }
  return table;
}

interface OwnPayload {
  readonly v?: number;
  readonly data: Json;
  readonly turnId?: string;
  readonly callId?: string;
}

/** The event or fact under its own type when the table has its definition; otherwise as it is. */
export function presentOwn<E extends { readonly type: string }>(table: OwnEventTable, event: E): E {
  if (table.size === 0) return event;
  if (event.type === "custom-emit") return presentLive(table, event as unknown as CustomEmit) as unknown as E;
  if (!event.type.startsWith(unknownPrefix)) return event;
  const fact = event as unknown as UnknownFact;
  const definition = table.get(fact.type.slice(unknownPrefix.length));
  const { payload, ...rest } = fact;
  const { v: version = 1, data, turnId, callId } = payload as unknown as OwnPayload;
  if (!definition?.kept || !Number.isInteger(version) || version > definition.version) return event;
  let current = data;
  for (let from = version; from < definition.version; from++) current = definition.upcasts[from]!(current);
  const ids = { ...(turnId !== undefined && { turnId }), ...(callId !== undefined && { callId }) };
  return { ...rest, ...ids, type: definition.type, version: definition.version, data: current } as unknown as E;
}

type CustomEmit = Extract<BoughEvent, { type: "custom-emit" }>;

function presentLive(table: OwnEventTable, event: CustomEmit): object {
  const definition = table.get(event.name);
  if (!definition || definition.kept) return event;
  const { name: _name, ...rest } = event;
  return { ...rest, type: definition.type, version: definition.version };
}
