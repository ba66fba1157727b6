import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeStore } from "../../testing/index.ts";
import { sqliteStore } from "./index.ts";

const noWord = "a file tells nobody anything that is not written";

describeStore("sqlite", {
  async open({ clock }) {
    const directory = await mkdtemp(join(tmpdir(), "bough-sqlite-"));
    const path = join(directory, "bough.db");
    const opened = [await sqliteStore(path, { clock })];
    const another = async () => {
      const store = await sqliteStore(path, { clock });
      opened.push(store);
      return store;
    };
    return {
      store: opened[0]!,
      reopen: async () => {
        await opened.at(-1)!.close();
        return another();
      },
      second: another,
      dispose: async () => {
        for (const store of opened) await store.close();
        await rm(directory, { recursive: true });
      },
    };
  },
  lacks: { live: noWord },
});

describeStore("sqlite in memory", {
  async open({ clock }) {
    const store = await sqliteStore(":memory:", { clock });
    return { store, dispose: () => store.close() };
  },
  lacks: { reopen: "the data goes with the handle", secondHandle: "the data belongs to one handle", live: noWord },
});
