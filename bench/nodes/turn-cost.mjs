// The cost of a turn must not grow with the conversation: as in bench:log, with a database for each length.

import { eachStore } from "../lib/runner.mjs";
import { compareLengths } from "../log/append-cost.mjs";
import { withPostgres } from "./servers.mjs";

export async function run(context) {
  await eachStore(context, ["postgres"], (kind) =>
    withPostgres(context, ({ newDatabase }) => compareLengths(context, kind, newDatabase)),
  );
}
