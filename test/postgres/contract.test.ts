import type { Clock } from "../../src/base/clock.ts";
import { describeStore } from "../../src/testing/index.ts";
import { describe, placeForMany } from "./kit.ts";

const place = placeForMany();

// Every answer is a round trip, and a chain is looked at by reading each of its branches in pages of one.
const sizes = { chain: 60, writers: 20 };

describe("on a real server", () => {
  const harness = {
    async open({ clock }: { clock: Clock }) {
      await place.empty();
      const options = { clock, leaseNow: () => clock.now() };
      const opened = [await place.open(options)];
      const another = async () => {
        const store = await place.open(options);
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
        },
      };
    },
  };
  describeStore("postgres", harness, sizes);
});
