// A branch in a process that has never seen it: as in bench:log, with the server's cache warm.

import { eachStore } from "../lib/runner.mjs";
import { compareLoads, fill } from "../log/cold-load.mjs";
import { withPostgres } from "./servers.mjs";

export async function run(context) {
  await eachStore(context, ["postgres"], (kind) =>
    withPostgres(context, async ({ newDatabase }) => {
      const place = await newDatabase();
      await fill(context, kind, place);
      await compareLoads(context, { [kind]: place });
    }),
  );
}
