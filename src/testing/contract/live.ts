import { describe, expect } from "vitest";
import { type BranchRef, type LiveChannel, liveTextBytes, type Store } from "../../log/store.ts";
import { type Contract, givenFork, givenSession, turn } from "./kit.ts";

export function liveCases(contract: Contract): void {
  describe("live", () => {
    contract.testWith("live", "a text reaches those who hear of the branch through other handles", async (given) => {
      const { store, second } = given;
      const main = await givenSession(store);
      const fork = await givenFork(store, main, "fork", 0);
      const other = await second();
      const [ofMain, again, ofFork] = [
        await hearing(other, main),
        await hearing(other, main),
        await hearing(other, fork),
      ];
      for (const text of awkward) await liveOf(store).send(main, text);
      await liveOf(store).send(fork, "fork");
      await until(() => ofFork.length > 0 && again.length === awkward.length);
      expect([ofMain, again, ofFork]).toEqual([awkward, awkward, ["fork"]]);
    });

    contract.testWith("live", "who sends does not hear it", async ({ store, second }) => {
      const main = await givenSession(store);
      const other = await second();
      const [own, others] = [await hearing(store, main), await hearing(other, main)];
      await liveOf(store).send(main, "from one");
      await liveOf(other).send(main, "from other");
      await until(() => own.length > 0 && others.length > 0);
      expect([own, others]).toEqual([["from other"], ["from one"]]);
    });

    contract.testWith(
      "live",
      "a text that is too long is lost, and nothing else with it",
      async ({ store, second }) => {
        const main = await givenSession(store);
        const heard = await hearing(await second(), main);
        const longest = "é".repeat(liveTextBytes / 2);
        for (const text of [`${longest}.`, longest, "x".repeat(100_000), "after"]) await liveOf(store).send(main, text);
        await until(() => heard.includes("after"));
        expect(heard).toEqual([longest, "after"]);
      },
    );

    contract.testWith("live", "nothing is heard after the signal aborts", async ({ store, second }) => {
      const main = await givenSession(store);
      const other = await second();
      const control = new AbortController();
      const left = await hearing(other, main, control.signal);
      const stayed = await hearing(other, main);
      await liveOf(store).send(main, "1");
      await until(() => left.length > 0 && stayed.length > 0);
      control.abort();
      await liveOf(store).send(main, "2");
      await until(() => stayed.length > 1);
      expect([left, stayed]).toEqual([["1"], ["1", "2"]]);
      expect(await hearing(other, main, control.signal)).toEqual([]);
    });

    contract.testWith("live", "a branch that is not there can be told of and heard of", async ({ store, second }) => {
      const nowhere = { sessionId: "nobody", branchId: "nowhere" };
      const heard = await hearing(await second(), nowhere);
      await liveOf(store).send(nowhere, "x");
      await until(() => heard.length > 0);
    });

    contract.testWith("live", "after close nothing is sent or heard, and nothing fails", async ({ store, second }) => {
      const main = await givenSession(store);
      const other = await second();
      const heard = await hearing(other, main);
      await other.close();
      await liveOf(store).send(main, "x");
      await store.close();
      await liveOf(store).send(main, "x");
      await hearing(store, main);
      expect(heard).toEqual([]);
    });
  });
}

const awkward = ["1", "", " two words ", JSON.stringify({ a: "\u0000 \ud800 é 😀\n" }), "😀é\n'\"\\"];

function liveOf({ live, kind }: Store): LiveChannel {
  return live ?? expect.fail(`The ${kind} store has no live channel, and its harness does not say in lacks why.`);
}

/** The texts that are heard, as they come. */
async function hearing(store: Store, ref: BranchRef, signal = new AbortController().signal): Promise<string[]> {
  const heard: string[] = [];
  await liveOf(store).hear(ref, (text) => void heard.push(text), signal);
  return heard;
}

/** Nothing says when a text that may be lost has come. */
async function until(isThere: () => boolean): Promise<void> {
  while (!isThere()) await turn();
}
