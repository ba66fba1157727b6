// What a server does not read: facts of its own process reach its readers and its views without the store (Feed-5, Context-1).

import { expect, type MockInstance, test, vi } from "vitest";
import { createAgent } from "../../src/agent/index.ts";
import type { Store } from "../../src/log/store.ts";
import { scriptedModel } from "../../src/scripted/index.ts";
import type { Frame } from "../../src/wire/index.ts";
import { add, given, isEvent, type OpenStore, quiet, say, scope, settled } from "./kit.ts";

const script = [{ calls: [{ name: "add", input: { a: 1, b: 2 } }] }, "Three.", "Good."] as never;
const isReady = ({ type }: Frame) => type === "ready";
/** Longer than a feed waits for a run to tell its facts by itself. */
const later = () => new Promise((resolve) => setTimeout(resolve, 100));

/** The reads that were not for nothing: a store that several processes use may hint that there is news when there is none. */
async function usefulReads({ mock }: MockInstance<Store["read"]>, { kind }: Store): Promise<unknown[]> {
  if (kind !== "postgres") return mock.calls;
  const read = await Promise.all(mock.results.map(({ value }) => value as ReturnType<Store["read"]>));
  return mock.calls.filter((_, i) => read[i]!.length > 0);
}

export function describeReads(open: OpenStore): void {
  const counted = async () => {
    const store = await open();
    return { store, reads: vi.spyOn(store, "read") };
  };
  /** The agent as options, built by the server, or as an agent that existed before it. */
  const ways = {
    options: (store: Store) => ({ store, agent: { tools: { add } } }),
    agent: (store: Store) => {
      const options = { id: "helper", model: scriptedModel(script), tools: { add }, store, logger: quiet };
      return { agents: { helper: createAgent(options) } };
    },
  };

  for (const [way, optionsFor] of Object.entries(ways)) {
    test(`F5: a turn with a tool and a reader reads nothing from the log (agent given as ${way})`, async () => {
      const { store, reads } = await counted();
      const g = await given(script, { store, ...optionsFor(store) });
      const live = await g.liveHere(`${scope}/events/live`);
      await live.until(isReady);
      // The first turn loads the branch.
      await say(g, "Add.");
      await live.until(isEvent("turn.committed"));
      await g.ask("GET", `${scope}/state`);
      await later();
      reads.mockClear();
      await say(g, "And now?");
      await live.until((frame) => isEvent("turn.committed")(frame) && Number(frame.id) > 8);
      await later();
      expect(await usefulReads(reads, store)).toEqual([]);
      const { body } = await g.ask("GET", `${scope}/state`);
      expect(body.messages.at(-1).content).toMatchObject([{ text: "Good." }]);
      expect(await usefulReads(reads, store)).toEqual([]);
    });
  }

  test("Feed-5: a reader that was there and one that comes later get the same kept frames, byte for byte", async () => {
    const { store, reads } = await counted();
    const g = await given(script, { store, agent: { tools: { add } } });
    const there = await g.liveHere(`${scope}/events/live?after=1`);
    await there.until(isReady);
    await say(g, "Add.");
    await g.ask("PATCH", "/sessions/s/branches/main", { name: "Sums", metadata: { b: 1, a: { d: 1, c: [2] } } });
    await there.until(isEvent("branch.updated"));
    const readsOfFirst = reads.mock.calls.length;
    const late = await g.liveHere(`${scope}/events/live?after=1`);
    await late.until(isReady);
    expect(reads.mock.calls.length).toBeGreaterThan(readsOfFirst);
    const kept = (text: string) => text.split("\n\n").filter((frame) => frame.startsWith("id: "));
    expect(kept(there.text).length).toBeGreaterThan(6);
    expect(kept(there.text)).toEqual(kept(late.text));
  });

  test("Feed-5: a fact of another process is read, also between facts of a run of this one", async () => {
    const store = await open();
    const g = await given(["One.", "Two."], { store });
    const live = await g.liveHere(`${scope}/events/live`);
    await live.until(isReady);
    await say(g, "Hi");
    // Not through the server: to it, what is written here is another's.
    const other = createAgent({ model: scriptedModel([]), store });
    await other.updateBranch("s", { name: "Named by another" });
    await say(g, "Again");
    await settled(g);
    await live.until((frame) => isEvent("turn.committed")(frame) && Number(frame.id) > 6);
    const seqs = live.frames.flatMap((frame) => (frame.id === undefined ? [] : [Number(frame.id)]));
    expect(seqs).toEqual(seqs.map((_, i) => seqs[0]! + i));
    expect(live.types).toContain("branch.updated");
  });
}
