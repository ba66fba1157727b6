import { moment, visible } from "../../chat/text.ts";
import { type Message, textOf } from "../../events/index.ts";
import { openSessions } from "../../sessions/index.ts";
import { defineCommand, jsonArg, scopeOf } from "../command.ts";
import { pinArgs, pinOptions } from "../pins.ts";
import { chooseStore, withStore } from "../store.ts";
import { printTable } from "../terminal.ts";

export const pinsLs = defineCommand({
  args: { ...pinArgs, ...pinOptions, ...jsonArg },
  examples: ["pins ls user-123", "pins ls user-123 --branch main --json"],
  async run({ args, terminal }) {
    return withStore(chooseStore(args.store), {}, async (store) => {
      const sessions = await openSessions(store);
      const pins = await sessions.listPins(scopeOf(args));
      if (args.json) terminal.print(JSON.stringify({ pins }));
      else if (pins.length === 0) terminal.print("The branch has no pinned messages.");
      else {
        const { messages } = await sessions.loadBranch(scopeOf(args));
        const byId = new Map(messages.map((message) => [message.id, message]));
        const rows = pins.map((id) => rowOf(id, byId.get(id)));
        printTable(terminal, ["MESSAGE", "SINCE", "ROLE", "TEXT"], rows);
      }
      return 0;
    });
  },
});

/** How much of a message's text is shown. */
const longestText = 60;

/** A message that a hard compaction hides has its id alone. */
function rowOf(id: string, message: Message | undefined): string[] {
  if (!message) return [id, "", "", ""];
  const said = textOf(message).replaceAll(/\s+/g, " ").trim();
  const text = said.length > longestText ? `${said.slice(0, longestText)}…` : said;
  return [id, moment(message.createdAt), message.role, visible(text)];
}
