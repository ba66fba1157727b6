import { visible } from "../../chat/text.ts";
import { openSessions } from "../../sessions/index.ts";
import { defineCommand, scopeOf } from "../command.ts";
import { messageWord, pinArgs, pinOptions } from "../pins.ts";
import { chooseStore, withStore } from "../store.ts";

export const pinsAdd = defineCommand({
  args: { ...pinArgs, ...messageWord, ...pinOptions },
  examples: ["pins add user-123 01ABC", "pins add user-123 01ABC --branch main"],
  async run({ args, terminal }) {
    return withStore(chooseStore(args.store), {}, async (store) => {
      await (await openSessions(store)).pin(scopeOf(args), args.message);
      terminal.print(`Pinned ${visible(args.message)}: later compactions keep it verbatim.`);
      return 0;
    });
  },
});
