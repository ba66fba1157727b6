import { moment } from "../../chat/text.ts";
import { openSessions } from "../../sessions/index.ts";
import { defineCommand, jsonArg, misuse, storeArg, wholeNumber } from "../command.ts";
import { chooseStore, withStore } from "../store.ts";
import { printTable } from "../terminal.ts";

export const interactionsLs = defineCommand({
  args: {
    session: { type: "string", valueHint: "SESSION", description: "only questions of this session" },
    agent: { type: "string", valueHint: "AGENT", description: "only questions of this agent's turns" },
    limit: { type: "string", valueHint: "N", default: "50", description: "how many at most (default 50)" },
    cursor: { type: "string", valueHint: "C", description: "continue after an earlier page" },
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
    if (query.limit === 0) throw misuse("--limit must be an integer ≥ 1.");
    const page = await withStore(chooseStore(args.store), {}, async (store) =>
      (await openSessions(store)).listInteractions(query),
    );
    if (args.json) {
      terminal.print(JSON.stringify(page));
      return 0;
    }
    if (page.interactions.length === 0) terminal.note("No open questions.");
    else {
      const rows = page.interactions.map((each) => {
        const until = each.expiresAt === undefined ? "" : moment(each.expiresAt);
        const { id, kind, sessionId, branchId, openedAt, request } = each;
        return [id, kind, sessionId, branchId, moment(openedAt), until, JSON.stringify(request)];
      });
      printTable(terminal, ["ID", "KIND", "SESSION", "BRANCH", "ASKED", "UNTIL", "REQUEST"], rows);
    }
    if (page.cursor !== undefined) terminal.note(`More: add --cursor ${page.cursor}`);
    return 0;
  },
});
