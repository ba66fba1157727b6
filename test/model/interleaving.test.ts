import { describe, test } from "vitest";
import { explained, legal } from "./interleaving.ts";
import { holds, timeoutMs } from "./property.ts";
import { storeKinds } from "./stores.ts";

describe.each(storeKinds)("several writers on one store: $name", { timeout: timeoutMs }, (kind) => {
  test("a short history has an order in which every answer is right", async () => {
    await holds(explained(kind), 80);
  });

  test("a long history keeps what was acknowledged, in order, and refuses only with reason", async () => {
    await holds(legal(kind), 40);
  });
});
