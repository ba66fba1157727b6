import { visible } from "../../chat/text.ts";
import { openSessions } from "../../sessions/index.ts";
import { defineCommand, misuse, scopeOf } from "../command.ts";
import { messageWord, pinArgs, pinOptions } from "../pins.ts";
import { chooseStore, withStore } from "../store.ts";

export const pinsRm = defineCommand({
  args: { ...pinArgs, ...messageWord, ...pinOptions },
  examples: ["pins rm user-123 01ABC"],
  async run({ args, terminal }) {
    return withStore(chooseStore(args.store), {}, async (store) => {
      const sessions = await openSessions(store);
      const pins = await sessions.listPins(scopeOf(args));
      if (!pins.includes(args.message)) throw misuse(`Message ${visible(args.message)} is not pinned.`);
      await sessions.unpin(scopeOf(args), args.message);
      terminal.print(`Unpinned ${visible(args.message)}.`);
      return 0;
    });
  },
});
