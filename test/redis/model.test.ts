import { describe, test } from "vitest";
import type { Clock } from "../../src/base/clock.ts";
import { redisStore } from "../../src/stores/redis/index.ts";
import { explained, legal } from "../model/interleaving.ts";
import { holds, timeoutMs } from "../model/property.ts";
import { sideBySide } from "../model/side-by-side.ts";
import type { StoreKind } from "../model/stores.ts";
import { freshPrefix, sharedServer } from "./kit.ts";
import { missing } from "./server.ts";

describe.skipIf(missing)("the model", { timeout: timeoutMs }, () => {
  const server = sharedServer();

  const redis: StoreKind = {
    name: "redis",
    async open(clock: Clock) {
      const prefix = freshPrefix();
      const open = () => redisStore(server().url, { clock, prefix, onWarning: () => {} });
      let store = await open();
      return {
        name: "redis",
        get store() {
          return store;
        },
        async reopen() {
          await store.close();
          store = await open();
        },
        dispose: () => store.close(),
      };
    },
  };

  test("and the store show the same after every step", async () => {
    await holds(sideBySide([redis]), 8);
  });

  test("finds an order of short histories in which every answer is right", async () => {
    await holds(explained(redis), 25);
  });

  test("keeps what was acknowledged in long histories, in order, and refuses only with reason", async () => {
    await holds(legal(redis), 8);
  });
});
