// A run on a long branch of which models see little: it reads that, and nothing else loads the rest.

import { expect, test } from "vitest";
import { createAgent } from "../../src/agent/index.ts";
import type { Draft } from "../../src/events/index.ts";
import type { Store } from "../../src/log/index.ts";
import { scriptedModel } from "../../src/scripted/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { appendRaw, main, replay, says } from "../sessions/kit.ts";

const length = 3000;
const visible = 60;

/** A store with a long branch, and a count of what is read of it. */
async function given() {
  const inner = memoryStore({ segments: true });
  const writer = createAgent({ model: scriptedModel([]), store: inner });
  await writer.createSession("s");
  for (let n = 0; n < length; n += 20) {
    const turn = Array.from({ length: 20 }, (_, i) => says(i % 2 ? "assistant" : "user", `m${n + i}`, `m${n + i}`));
    await writer.appendTurn(main, turn);
  }
  const to = length - visible;
  const compaction: Draft = {
    ...{ type: "history.compacted", id: "h", at: 1, retention: "soft", from: 0, to, first: "m0", last: `m${to - 1}` },
    replacements: [{ id: "h.sum", role: "user", content: "So far: a lot." }],
  };
  await appendRaw(inner, main, compaction);
  await writer.loadBranch(main);
  // The writer has stored its pieces before it is done.
  await new Promise((resolve) => setImmediate(resolve));
  const read = { facts: 0, pieces: 0 };
  const store = new Proxy(inner, {
    get(target, key: keyof Store) {
      const member = Reflect.get(target, key, target);
      if (key === "segments") {
        const { segments } = target;
        const get: NonNullable<typeof segments>["get"] = (...args) => {
          read.pieces++;
          return segments!.get(...args);
        };
        return { ...segments, get };
      }
      if (typeof member !== "function") return member;
      if (key !== "read") return member.bind(target);
      return async (...args: Parameters<Store["read"]>) => {
        const events = await target.read(...args);
        read.facts += events.length;
        return events;
      };
    },
  });
  return { inner, store, read };
}

test("a cold run reads what its model sees; questions, resumption and a second run read no more of the history", async () => {
  const { inner, store, read } = await given();
  const seen: number[] = [];
  const model = scriptedModel((prompt) => {
    seen.push(prompt.length);
    return "Done.";
  });
  const agent = createAgent({ model, store });
  await agent.run("one", main).text();
  await agent.run("two", main).text();
  expect(seen).toEqual([visible + 2, visible + 4]);
  // The piece that was cut behind the compaction, and the one before it, in which what is visible begins.
  expect(read.pieces).toBeLessThanOrEqual(2);
  expect(read.facts).toBeLessThan(20);
  const fork = await agent.forkBranch(main, {});
  await agent.run("three", { sessionId: "s", branchId: fork.id }).text();
  expect(seen.at(-1)).toBe(visible + 6);
  expect(read.pieces).toBeLessThanOrEqual(2);
  // Whoever looks at the branch sees all of it.
  expect((await agent.loadBranch(main)).messages).toHaveLength(length + 4);
  expect((await agent.loadBranch(main)).messages).toEqual((await replay(inner, main)).messages);
  await agent.close();
});
