// Whatever a model asks for, whatever tools and people do, and whenever agents die: the log stays legal, nothing runs twice
// that must not, and the turn can be brought to its end.

import fc from "fast-check";
import { expect, test } from "vitest";
import { holds, timeoutMs } from "../model/property.ts";
import { replay } from "../sessions/kit.ts";
import { checkLife } from "./property/checks.ts";
import { live } from "./property/life.ts";
import { type LifePlan, onceStories, readStories, type Story, stories } from "./property/story.ts";
import { ref, World } from "./property/world.ts";

/** Nothing happens to the last one: it brings the turn to its end. */
const last: LifePlan = {
  entry: "run",
  questions: "wait",
  listens: true,
  answersFrom: "run",
  end: "none",
  after: 0,
  host: "here",
};

async function tell(story: Story): Promise<World> {
  const world = await World.of(story);
  for (const [i, plan] of [...story.lives, last].entries()) {
    const lived = await live(world, plan, i, i === story.lives.length);
    if (!lived) break;
    expect(await checkLife(world, lived)).toEqual([]);
  }
  return world;
}

const comesToItsEnd = (told: fc.Arbitrary<Story>, runs: number) =>
  holds(
    fc.asyncProperty(told, async (story) => {
      const { store } = await tell(story);
      const { open, turns } = await replay(store, ref);
      expect(open).toBeNull();
      expect(turns.length).toBeGreaterThan(0);
    }),
    runs,
  );

test("a turn comes to a legal end", { timeout: timeoutMs }, () => comesToItsEnd(stories, 400));

test("calls that only read, and may begin before the log has them, come to a legal end", { timeout: timeoutMs }, () =>
  comesToItsEnd(readStories, 400),
);

test("a call that must not run twice runs again only when somebody says so", { timeout: timeoutMs }, () =>
  comesToItsEnd(onceStories, 400),
);
