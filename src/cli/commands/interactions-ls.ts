import { openSessions } from "../../sessions/index.ts";
import { defineCommand, jsonArg, misuse, storeArg, wholeNumber } from "../command.ts";
import { chooseStore, withStore } from "../store.ts";
import { moment, printTable } from "../terminal.ts";

export const interactionsLs = defineCommand({
  args: {
    session: { type: "string", valueHint: "SESSION", description: "only those of this session" },
    agent: { type: "string", valueHint: "AGENT", description: "only those of turns of this agent" },
    limit: { type: "string", valueHint: "N", default: "50", description: "at most this many (default 50)" },
    cursor: { type: "string", valueHint: "C", description: "go on where an earlier page ended" },
    ...storeArg,
    ...jsonArg,
  },
  examples: ["interactions ls", "interactions ls --session user-123 --json"],
  async run({ args, terminal }) {
    const query = {
      limit: wholeNumber(args.limit, "limit"),
      ...(args.session !== undefined && { sessionId: args.session }),
      ...(args.agent !== undefined && { agentId: args.agent }),
      ...(args.cursor !== undefined && { cursor: args.cursor }),
    };
    if (query.limit === 0) throw misuse("--limit is at least 1.");
    const page = await withStore(chooseStore(args.store), {}, async (store) =>
      (await openSessions(store)).listInteractions(query),
    );
    if (args.json) {
      terminal.print(JSON.stringify(page));
      return 0;
    }
    if (page.interactions.length === 0) terminal.note("Nothing waits for an answer.");
    else {
      const rows = page.interactions.map((each) => {
        const until = each.expiresAt === undefined ? "" : moment(each.expiresAt);
        const { id, kind, sessionId, branchId, openedAt, request } = each;
        return [id, kind, sessionId, branchId, moment(openedAt), until, JSON.stringify(request)];
      });
      printTable(terminal, ["ID", "KIND", "SESSION", "BRANCH", "ASKED", "UNTIL", "REQUEST"], rows);
    }
    if (page.cursor !== undefined) terminal.note(`There are more: add --cursor ${page.cursor}`);
    return 0;
  },
});
