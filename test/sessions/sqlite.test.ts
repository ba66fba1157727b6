import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sqliteStore } from "../../src/stores/sqlite/index.ts";
import { describeSessions } from "./suite.ts";

describeSessions({
  kind: "sqlite",
  async open({ clock }) {
    const directory = await mkdtemp(join(tmpdir(), "bough-sessions-"));
    const another = async () => {
      const store = await sqliteStore(join(directory, "bough.db"), { clock });
      opened.push(store);
      return store;
    };
    const opened: Awaited<ReturnType<typeof sqliteStore>>[] = [];
    return {
      store: await another(),
      second: another,
      dispose: async () => {
        for (const store of opened) await store.close();
        await rm(directory, { recursive: true });
      },
    };
  },
});
