// The queue on PostgreSQL, where several nodes send and take: the cases and properties that every store of one host runs too.

import { casesOn } from "../sessions/kit.ts";
import { queueCases } from "../sessions/queue.cases.ts";
import { queueProperties } from "../sessions/queue-property.cases.ts";
import { describe, placeForMany } from "./kit.ts";

describe("queues on PostgreSQL", () => {
  const place = placeForMany();
  const open = {
    kind: "postgres",
    async open({ clock }: { clock: Parameters<typeof place.open>[0]["clock"] }) {
      const store = await place.open({ clock: clock! });
      const others: (typeof store)[] = [];
      const second = async () => {
        const other = await place.open({ clock: clock! });
        others.push(other);
        return other;
      };
      const dispose = async () => {
        for (const each of [...others, store]) await each.close();
        await place.empty();
      };
      return { store, second, dispose };
    },
  };
  queueCases(casesOn(open));
  queueProperties(open, 12);
});
