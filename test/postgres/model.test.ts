// The suites of test/model on PostgreSQL: beside memory and the model, and with several writers at once. A step here is
// dozens of round trips, so there are fewer of them; BOUGH_RUNS makes it a long search.

import { test } from "vitest";
import type { Clock } from "../../src/base/clock.ts";
import { explained, legal } from "../model/interleaving.ts";
import { holds, timeoutMs } from "../model/property.ts";
import { sideBySide } from "../model/side-by-side.ts";
import { type StoreKind, storeKinds } from "../model/stores.ts";
import { describe, placeForMany } from "./kit.ts";

const place = placeForMany();

const postgres: StoreKind = {
  name: "postgres",
  async open(clock: Clock) {
    await place.empty();
    const options = { clock, leaseNow: () => clock.now() };
    let store = await place.open(options);
    return {
      name: "postgres",
      get store() {
        return store;
      },
      async reopen() {
        await store.close();
        store = await place.open(options);
      },
      dispose: () => store.close(),
    };
  },
};

describe("the models on PostgreSQL", { timeout: timeoutMs }, () => {
  test("it shows the same as memory and the model after every step", async () => {
    const memory = storeKinds.filter(({ name }) => name === "memory");
    await holds(sideBySide([...memory, postgres]), 12);
  });

  test("a short history has an order in which every answer is right", async () => {
    await holds(explained(postgres), 40);
  });

  test("a long history keeps what was acknowledged, in order, and refuses only with reason", async () => {
    await holds(legal(postgres), 15);
  });
});
