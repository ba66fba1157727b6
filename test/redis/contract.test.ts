import { describe } from "vitest";
import type { Clock } from "../../src/base/clock.ts";
import { type RedisStore, redisStore } from "../../src/stores/redis/index.ts";
import { describeStore } from "../../src/testing/index.ts";
import { freshPrefix, sharedServer } from "./kit.ts";
import { missing } from "./server.ts";

describe.skipIf(missing)("on a server", () => {
  const server = sharedServer();
  const open = async ({ clock }: { clock: Clock }) => {
    const prefix = freshPrefix();
    const opened: RedisStore[] = [];
    const another = async () => {
      const store = await redisStore(server().url, { clock, prefix, onWarning: () => {} });
      opened.push(store);
      return store;
    };
    return {
      store: await another(),
      reopen: async () => {
        await opened.at(-1)!.close();
        return another();
      },
      second: another,
      dispose: async () => {
        for (const store of opened) await store.close();
      },
    };
  };
  // The chain is read page by page of one fact from every branch of it: at 300 that is 100,000 questions to the server.
  describeStore("redis", { open }, { chain: 60 });
});
