import { describeStore } from "../../testing/index.ts";
import { memoryStore } from "./index.ts";

const noDisk = "it keeps nothing outside its own object";

describeStore("memory", {
  async open(options) {
    const store = memoryStore({ ...options, segments: true });
    return { store, dispose: () => store.close() };
  },
  lacks: { reopen: noDisk, secondHandle: noDisk, live: noDisk },
});
