// What lists show people, so that nothing has to be loaded to be shown.

import { describe, expect, test } from "vitest";
import { partings } from "../../src/projection/index.ts";
import { add, type Given, given, type OpenStore, say, scope, settled, until } from "./kit.ts";

const session = "/sessions/s";
const main = `${session}/branches/main`;
const at = (branchId: string) => `/agents/helper/sessions/s/branches/${branchId}`;

async function branchesOf({ ask }: Given) {
  return (await ask("GET", `${session}/branches?limit=1000`)).body.branches;
}

export function describeLists(open: OpenStore): void {
  describe("branches", () => {
    test("4.21, 5.2 an answer that is given anew shares its question, and is a version on every branch", async () => {
      const g = await given(["One.", "Two.", "Three."], { open });
      await say(g, "A number, please,\n and another line");
      const [question] = (await g.ask("GET", `${main}/messages`)).body.messages;
      const versions = ["main"];
      for (const newBranchId of ["x", "y"]) {
        // The second one from the first.
        const body = { newBranchId, fromMessageId: question.id };
        const forked = await g.ask("POST", `${at(versions.at(-1)!)}/fork`, body);
        expect(forked.status).toBe(201);
        expect(forked.body).not.toHaveProperty("firstWords");
        expect((await g.ask("POST", `${at(newBranchId)}/inputs`, {})).status).toBe(202);
        await settled(g, at(newBranchId));
        versions.push(newBranchId);
      }
      const branches = await branchesOf(g);
      expect(branches.map((each: { firstWords: string }) => each.firstWords)).toEqual([
        "A number, please, and another line",
        "Two.",
        "Three.",
      ]);
      for (const [current, id] of versions.entries()) {
        const found = partings(branches, id);
        expect(found).toMatchObject([{ index: 1, current, afterMessageId: question.id }]);
        expect(found[0]!.versions.map(({ branchId }) => branchId)).toEqual(versions);
        const { branch } = (await g.ask("GET", `${at(id)}/state`)).body;
        const listed = branches.find((each: { id: string }) => each.id === id);
        for (const key of ["firstMessageId", "firstWords", "agentId"]) expect(branch[key]).toBe(listed[key]);
      }
    });

    test("4.21 what was undone and is brought back parts where it was undone", async () => {
      const g = await given(["One.", "Two.", "Three."], { open });
      await say(g, "First");
      await say(g, "Second");
      const { seq } = (await g.ask("GET", main)).body;
      await g.ask("POST", `${main}/revert`, { toMessageIndex: 2 });
      const [{ reverts }] = await branchesOf(g);
      const { messages } = (await g.ask("GET", `${main}/messages`)).body;
      expect(reverts).toEqual([{ seq: seq + 1, messageCount: 2, messageId: messages[1].id }]);
      await say(g, "Other");
      await g.ask("POST", `${scope}/fork`, { newBranchId: "back", fromSeq: reverts[0].seq - 1 });
      const branches = await branchesOf(g);
      expect(partings(branches, "back")).toMatchObject([{ index: 2, current: 1 }]);
      expect(partings(branches, "main")).toMatchObject([{ index: 2, current: 0 }]);
      expect(branches[1]).not.toHaveProperty("reverts");
    });

    test("4.21 a branch tells who waits, who worked on it last, and that it failed", async () => {
      const script = [{ calls: [{ name: "add", input: { a: 1, b: 2 } }] }, "Three.", { error: new Error("Down.") }];
      const asking = { ...add, permission: true };
      const g = await given(script, { open, agent: { tools: { add: asking }, retry: { attempts: 1 } } });
      await g.ask("POST", `${scope}/inputs`, { input: "Add" });
      const waiting = await until(async () => (await branchesOf(g)).find((each: { waiting: number }) => each.waiting));
      expect(waiting).toMatchObject({ waiting: 1, agentId: "helper", openTurnId: expect.any(String) });
      const [{ id }] = (await g.ask("GET", `${scope}/state`)).body.interactions;
      await g.ask("POST", `${scope}/responses`, { interactionId: id, answer: { approved: true } });
      await settled(g);
      const [after] = await branchesOf(g);
      expect(after).not.toHaveProperty("waiting");
      expect(after).not.toHaveProperty("ended");
      await say(g, "Fail");
      expect(await branchesOf(g)).toMatchObject([{ ended: "failed", agentId: "helper" }]);
      await g.ask("POST", `${main}/revert`, { toMessageIndex: 0 });
      const [undone] = await branchesOf(g);
      for (const key of ["ended", "firstWords", "firstMessageId"]) expect(undone).not.toHaveProperty(key);
    });
  });
}
