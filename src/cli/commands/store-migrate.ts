import { defineCommand, jsonArg, storeWord } from "../command.ts";
import { showUrl } from "../place.ts";
import { chooseStore, withStore } from "../store.ts";
import { storeVersion } from "../store-version.ts";
import { toJson } from "../terminal.ts";

export const storeMigrate = defineCommand({
  args: {
    ...storeWord,
    ...jsonArg,
  },
  examples: ["store migrate postgres://localhost/app", "store migrate sqlite:./bough.db"],
  async run({ args, terminal }) {
    const url = chooseStore(args.url, "the store's URL");
    const from = await storeVersion(url);
    // Opening a store migrates it.
    const kind = await withStore(url, { create: true }, async (store) => store.kind);
    const to = await storeVersion(url);
    if (args.json) terminal.print(toJson({ store: showUrl(url), kind, from: from ?? null, to: to ?? null }));
    else terminal.print(`${showUrl(url)}: ${sentence(from, to)}`);
    return 0;
  },
});

function sentence(from: number | undefined, to: number | undefined): string {
  if (to === undefined) return "up to date";
  if (from === undefined || from === to) return `up to date (version ${to})`;
  return from === 0 ? `created (version ${to})` : `migrated from version ${from} to ${to}`;
}
