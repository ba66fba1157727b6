import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeStore } from "../../testing/index.ts";
import { fileStore } from "./index.ts";

describeStore("file", {
  lacks: { secondHandle: "one process owns the directory", live: "one process owns the directory" },
  async open({ clock }) {
    const directory = await mkdtemp(join(tmpdir(), "bough-file-"));
    const under = {
      store: await fileStore(directory, { clock }),
      async reopen() {
        await under.store.close();
        under.store = await fileStore(directory, { clock });
        return under.store;
      },
      async dispose() {
        await under.store.close();
        await rm(directory, { recursive: true });
      },
    };
    return under;
  },
});
