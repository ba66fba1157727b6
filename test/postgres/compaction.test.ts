// Compactions on PostgreSQL, where several nodes write: the cases and properties that every store of one host runs too.

import { compactedCases } from "../sessions/compacted.cases.ts";
import { compactingCases } from "../sessions/compacting.cases.ts";
import { compactionCases } from "../sessions/compaction.cases.ts";
import { casesOn } from "../sessions/kit.ts";
import { overlayCases } from "../sessions/overlays.cases.ts";
import { positionCases } from "../sessions/positions.cases.ts";
import { propertyCases } from "../sessions/property.cases.ts";
import { restoreCases } from "../sessions/restoring.cases.ts";
import { describe, placeForMany } from "./kit.ts";

describe("compactions on PostgreSQL", () => {
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
  compactingCases(casesOn(open));
  compactedCases(casesOn(open));
  compactionCases(casesOn(open));
  overlayCases(casesOn(open));
  restoreCases(open);
  positionCases(open);
  propertyCases(open);
});
