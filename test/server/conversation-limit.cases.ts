// One conversation takes a bounded part of a server's memory. What was compacted, or forked away from, does not count.

import { expect, test } from "vitest";
import { expectProblem, type Given, given, type OpenStore, say, scope } from "./kit.ts";

const conversationBytes = 400_000;
const large = "x".repeat(60_000);

const input = (g: Given, text: string, path = scope) => g.ask("POST", `${path}/inputs`, { input: text });

/** A server with a conversation that takes no further input. */
async function filled(open: OpenStore) {
  const g = await given(() => "Read.", { open, limits: { conversationBytes } });
  let turns = 0;
  for (; (await g.ask("GET", `${scope}/state`)).body.messages.length < 12; turns++) await say(g, `${turns} ${large}`);
  for (let status = 202; status !== 413; turns++) {
    if (turns > 20) throw new Error("No input was refused.");
    const answer = await input(g, `${turns} ${large}`);
    status = answer.status;
    if (status === 202) await g.ask("GET", `${scope}/runs/active`);
    else if (status === 409) turns--;
    else expect(expectProblem(answer, 413, "limit_exceeded").data).toMatchObject({ limit: conversationBytes });
  }
  return g;
}

export function describeConversationLimit(open: OpenStore): void {
  test("5.20 a conversation that is too large takes no further input, stays readable, and blocks no other", async () => {
    const g = await filled(open);
    const { status, body } = await g.ask("GET", `${scope}/state?last=1000`);
    expect(status).toBe(200);
    expect(body).not.toHaveProperty("openTurn");
    expect(body.branch.messageCount).toBeLessThan(20);
    expectProblem(await input(g, "One word"), 413, "limit_exceeded");
    await g.ask("POST", "/sessions", { sessionId: "other" });
    expect((await input(g, "Hi", "/agents/helper/sessions/other/branches/main")).status).toBe(202);
  });

  test("5.20 it goes on once it is compacted, from an earlier message, and after a revert", async () => {
    const g = await filled(open);
    const agent = "/agents/helper/sessions/s/branches";
    const fork = await g.ask("POST", `${scope}/fork`, { fromMessageIndex: 2, newBranchId: "early" });
    expect(fork.status).toBe(201);
    expect((await input(g, "Hi", `${agent}/early`)).status).toBe(202);
    expect((await g.ask("POST", `${scope}/compact`, { keep: { turns: 1 } })).status).toBe(201);
    await say(g, "Hi");
    expect((await g.ask("POST", `/sessions/s/branches/main/uncompact`, {})).status).toBe(200);
    expectProblem(await input(g, "Hi"), 413, "limit_exceeded");
    expect((await g.ask("POST", "/sessions/s/branches/main/revert", { toMessageIndex: 4 })).status).toBe(200);
    await say(g, "Hi");
  });
}
