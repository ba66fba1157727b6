import { moment } from "../../chat/text.ts";
import { auditPrefix, listShown } from "../../log/reserved.ts";
import { detailsOf } from "../../sessions/session-details.ts";
import { defineCommand, jsonArg, misuse, storeArg, wholeNumber } from "../command.ts";
import { chooseStore, withStore } from "../store.ts";
import { printTable, toJson } from "../terminal.ts";

export const sessionsLs = defineCommand({
  args: {
    limit: { type: "string", valueHint: "N", default: "50", description: "how many at most (default 50)" },
    cursor: { type: "string", valueHint: "C", description: "continue after an earlier page" },
    where: { type: "string", valueHint: "KEY=VALUE", description: "only sessions with this metadata" },
    ...storeArg,
    ...jsonArg,
  },
  examples: ["sessions ls", "sessions ls --where user=ada --limit 10", "sessions ls --store ./sessions --json"],
  async run({ args, terminal }) {
    const query = {
      limit: wholeNumber(args.limit, "limit"),
      ...(args.cursor !== undefined && { cursor: args.cursor }),
      ...(args.where !== undefined && { metadata: pairOf(args.where) }),
    };
    if (query.limit === 0) throw misuse("--limit must be an integer ≥ 1.");
    const { titles, ...page } = await withStore(chooseStore(args.store), {}, async (store) => {
      const found = await listShown(store, query, (id) => !id.startsWith(auditPrefix));
      return { ...found, titles: args.json ? [] : await detailsOf(store, found.sessions, ["title"]) };
    });
    if (args.json) {
      terminal.print(toJson(page));
      return 0;
    }
    if (page.sessions.length === 0) {
      terminal.note("No sessions.");
      return 0;
    }
    const rows = page.sessions.map(({ id, activeAt, createdAt, metadata }, i) => {
      return [id, titles[i]?.title ?? "", moment(activeAt), moment(createdAt), JSON.stringify(metadata)];
    });
    printTable(terminal, ["SESSION", "TITLE", "LAST ACTIVITY", "CREATED", "METADATA"], rows);
    if (page.cursor !== undefined) terminal.note(`More: add --cursor ${page.cursor}`);
    return 0;
  },
});

function pairOf(text: string): Record<string, string> {
  const at = text.indexOf("=");
  if (at < 1) throw misuse(`--where must be KEY=VALUE, not "${text}".`);
  return { [text.slice(0, at)]: text.slice(at + 1) };
}
