import { memoryStore } from "../../src/stores/memory/index.ts";
import { describeSessions } from "./suite.ts";

describeSessions({
  kind: "memory",
  async open({ clock }) {
    const store = memoryStore({ clock });
    return { store, second: async () => store, dispose: () => store.close() };
  },
});
