import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileStore } from "../../src/stores/file/index.ts";
import { describeSessions } from "./suite.ts";

describeSessions({
  kind: "file",
  async open({ clock }) {
    const directory = await mkdtemp(join(tmpdir(), "bough-sessions-"));
    const store = await fileStore(directory, { clock });
    return {
      store,
      // One process owns the directory, so another handle is another Sessions on the same store.
      second: async () => store,
      dispose: async () => {
        await store.close();
        await rm(directory, { recursive: true });
      },
    };
  },
});
