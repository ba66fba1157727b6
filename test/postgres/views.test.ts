// What runs load of long branches, and what forks cost, on PostgreSQL.

import { casesOn, type Place } from "../sessions/kit.ts";
import { partialCases } from "../sessions/partial.cases.ts";
import { partialProperties } from "../sessions/partial-properties.cases.ts";
import { describe, freshSchema, opened, placeForMany } from "./kit.ts";

const place: Place = {
  kind: "postgres",
  async open({ clock }) {
    const schema = freshSchema();
    const store = await opened({ clock, schema });
    return { store, second: () => opened({ clock, schema }), dispose: async () => {} };
  },
};

describe("views on PostgreSQL", () => {
  const many = placeForMany();
  partialCases(casesOn(place));
  partialProperties(
    {
      kind: "postgres",
      async open({ clock }) {
        await many.empty();
        const store = await many.open({ clock });
        return { store, second: () => many.open({ clock }), dispose: () => store.close() };
      },
    },
    10,
  );
});
