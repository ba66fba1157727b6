// A context with nothing cached, on a store that counts what is read.

import type { Store } from "../../src/log/index.ts";
import { type Context, createContext } from "../../src/sessions/context.ts";
import { Sessions } from "../../src/sessions/index.ts";
import { seededIds } from "../../src/testing/index.ts";
import type { Given } from "./kit.ts";

interface Reads {
  facts: number;
  /** How often facts were asked for. */
  reads: number;
  pieces: number;
  /** The characters of both. */
  size: number;
}

export function counted(
  { store, clock }: Given,
  name = "cold",
): { context: Context; sessions: Sessions; reads: Reads } {
  const reads: Reads = { facts: 0, reads: 0, pieces: 0, size: 0 };
  const counting = new Proxy(store, {
    get(target, key: keyof Store) {
      const member = Reflect.get(target, key, target);
      if (key === "segments" && member) {
        const { segments } = target;
        return {
          save: (...args: Parameters<NonNullable<typeof segments>["save"]>) => segments!.save(...args),
          get: async (...args: Parameters<NonNullable<typeof segments>["get"]>) => {
            reads.pieces++;
            const segment = await segments!.get(...args);
            for (const line of segment?.lines ?? []) reads.size += line.length;
            return segment;
          },
        };
      }
      if (typeof member !== "function") return member;
      if (key !== "read") return member.bind(target);
      return async (...args: Parameters<Store["read"]>) => {
        const events = await target.read(...args);
        reads.reads++;
        reads.facts += events.length;
        for (const { data } of events) reads.size += data.length;
        return events;
      };
    },
  });
  const context = createContext(counting, { clock, ids: seededIds(name) });
  return { context, sessions: new Sessions(context), reads };
}
