// The queue on Redis, where several nodes send and take: the cases and properties that every store of one host runs too.

import { describe } from "vitest";
import { redisStore } from "../../src/stores/redis/index.ts";
import { casesOn, type Place } from "../sessions/kit.ts";
import { queueCases } from "../sessions/queue.cases.ts";
import { queueProperties } from "../sessions/queue-property.cases.ts";
import { freshPrefix, sharedServer } from "./kit.ts";
import { missing } from "./server.ts";

describe.skipIf(missing)("queues on Redis", () => {
  const server = sharedServer();
  const place: Place = {
    kind: "redis",
    async open({ clock }) {
      const prefix = freshPrefix();
      const opened: Awaited<ReturnType<typeof redisStore>>[] = [];
      const another = async () => {
        const store = await redisStore(server().url, { prefix, clock, onWarning: () => {} });
        opened.push(store);
        return store;
      };
      const dispose = async () => {
        for (const store of opened) await store.close();
      };
      return { store: await another(), second: another, dispose };
    },
  };
  queueCases(casesOn(place));
  queueProperties(place, 12);
});
