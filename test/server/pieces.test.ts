// How much of a log a server reads at a time: a bounded number of bytes, however large the events are.

import { expect, test } from "vitest";
import type { Store } from "../../src/log/store.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { add, expectProblem, given, type LiveStream, say, scope, until } from "./kit.ts";

/** A store that notes the bytes of its largest read. */
function weighed(store: Store, noted: { largest: number }): Store {
  return new Proxy(store, {
    get(target, name: keyof Store) {
      const method = target[name];
      if (typeof method !== "function") return method;
      if (name !== "read") return method.bind(target);
      return async (...args: Parameters<Store["read"]>) => {
        const facts = await target.read(...args);
        noted.largest = Math.max(
          noted.largest,
          facts.reduce((sum, { data }) => sum + data.length, 0),
        );
        return facts;
      };
    },
  });
}

test("large events are read in pieces: for an unknown question, the inbox, a selection and a stream", async () => {
  const noted = { largest: 0 };
  const store = weighed(memoryStore(), noted);
  const sum = { calls: [{ name: "add", input: { a: 1, b: 2 } }] };
  const script = (prompt: readonly unknown[]) => (JSON.stringify(prompt.at(-1)).includes("Add") ? sum : "Read.");
  const options = { store, limits: { requestsPerSecond: 1e6, burst: 1e6 } };
  const first = await given(script, { ...options, agent: { tools: { add: { ...add, permission: true } } } });
  const size = 200_000;
  const inputs = 100;
  for (let n = 0; n < inputs; n++) await say(first, `${n} ${"x".repeat(size)}`);
  await first.ask("POST", `${scope}/inputs`, { input: "Add" });
  await until(async () => (await first.ask("GET", `${scope}/state?last=1`)).body.interactions.length === 1);
  // Half of the log at most would be two pieces; a thousand events at once would be all of it.
  const bound = (inputs * size) / 2;
  noted.largest = 0;

  const answer = { interactionId: "unknown", answer: { approved: true } };
  expectProblem(await first.ask("POST", `${scope}/responses`, answer), 404, "interaction_not_found");
  expect((await first.ask("GET", "/interactions")).body.interactions).toHaveLength(1);
  const query = "type=turn.committed&limit=1000";
  expect((await first.ask("GET", `/sessions/s/branches/main/events?${query}`)).body.events).toHaveLength(inputs);
  const live: LiveStream = await first.live(`${scope}/events/live?after=0`);
  await live.until(({ type }) => type === "ready");
  expect(noted.largest).toBeGreaterThan(0);
  expect(noted.largest).toBeLessThan(bound);
});
