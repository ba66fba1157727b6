// A client gives whole what its server gives in pages.

import { expect, test } from "vitest";
import { given, say, scope } from "../server/kit.ts";
import { clientOf } from "./kit.ts";

const large = "x".repeat(3000);

async function talked(turns: number) {
  const g = await given(() => large, { limits: { answerBytes: 20_000 } });
  for (let n = 0; n < turns; n++) await say(g, `${n} ${large}`);
  const client = await clientOf(g);
  return { g, branch: client.branch({ agentId: "helper", sessionId: "s" }) };
}

test("a state has as many messages as were asked for, and the cursor of those before", async () => {
  const { g, branch } = await talked(10);
  expect((await g.ask("GET", `${scope}/state`)).body.messages.length).toBeLessThan(10);
  const state = await branch.state();
  expect(state.messages).toHaveLength(20);
  expect(state.before).toBeUndefined();
  const some = await branch.state({ last: 13 });
  expect(some.messages).toEqual(state.messages.slice(-13));
  expect(some.before).toBe(some.messages[0]!.id);
  const page = await branch.messages({ before: some.before!, last: 3 });
  expect(page.messages).toEqual(state.messages.slice(-16, -13));
});

test("events are as many as were asked for, and say whether there are more", async () => {
  const { branch } = await talked(10);
  const events = await branch.events();
  expect(events.map(({ seq }) => seq)).toEqual(Array.from({ length: events.length }, (_, i) => i + 1));
  expect(events.length).toBe((await branch.get()).seq);
  expect(events.after).toBeUndefined();
  const some = await branch.events({ after: 3, limit: 20 });
  expect(some.map(({ seq }) => seq)).toEqual(Array.from({ length: 20 }, (_, i) => i + 4));
  expect(some.after).toBe(23);
});

test("events of a type are as many as were asked for, and say whether there are more", async () => {
  const { branch } = await talked(10);
  const messages = await branch.events({ type: "message.added" });
  expect(messages).toHaveLength(20);
  expect(messages.after).toBeUndefined();
  const some = await branch.events({ type: "message.added", limit: 15 });
  expect(some).toEqual(messages.slice(0, 15));
  expect(some.after).toBe(some.at(-1)!.seq);
  const rest = await branch.events({ type: "message.added", after: some.after!, limit: 5 });
  expect(rest).toEqual(messages.slice(15));
  expect(rest.after).toBeUndefined();
});

test("a checkpoint has all its messages", async () => {
  const { g, branch } = await talked(10);
  const { id } = await branch.checkpoints.save();
  await say(g, "later");
  const { messages, checkpoint } = await branch.checkpoints.load(id);
  expect(messages).toHaveLength(20);
  expect(checkpoint.id).toBe(id);
});

test("a picture of a long branch is as long as was asked for", async () => {
  const { branch } = await talked(10);
  const live = branch.live({ last: 15 });
  await new Promise<void>((resolve) => {
    const leave = live.subscribe(() => {
      if (live.current.status === "loading") return;
      leave();
      resolve();
    });
  });
  expect(live.current.messages).toHaveLength(15);
});
