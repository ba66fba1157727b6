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

  describe("sessions", () => {
    test("3.16 a list tells titles, marks, branches and usage, of those who ask for it", async () => {
      const script = [{ calls: [{ name: "add", input: { a: 1, b: 2 } }] }, "Three."];
      const g = await given(script, { open, agent: { tools: { add: { ...add, permission: true } } } });
      await g.ask("POST", "/sessions", { sessionId: "named", metadata: { title: "Plans" } });
      await g.ask("POST", `${scope}/inputs`, { input: "Add one\nand two" });
      await until(async () => (await g.ask("GET", `${scope}/state`)).body.interactions.length === 1);
      await g.ask("POST", `${scope}/inputs`, { input: "Later", ifActive: "queue" });
      const all = "include=title,marks,branches,usage";
      const list = async () => (await g.ask("GET", `/sessions?${all}`)).body.sessions;
      const [busy, named] = await list();
      expect(busy).toMatchObject({
        ...{ id: "s", title: "Add one and two", branchCount: 1, usage: {} },
        marks: { working: 0, waiting: 1, queued: 1, agentId: "helper" },
      });
      expect(named).toMatchObject({ title: "Plans", marks: { working: 0, waiting: 0, queued: 0 }, branchCount: 1 });
      await g.ask("POST", `${scope}/fork`, { newBranchId: "f", fromMessageIndex: 0 });
      const [{ id }] = (await g.ask("GET", `${scope}/state`)).body.interactions;
      await g.ask("POST", `${scope}/responses`, { interactionId: id, answer: { approved: true } });
      const done = await until(async () => {
        const one = (await g.ask("GET", `/sessions/s?${all}`)).body;
        return one.marks.waiting + one.marks.working + one.marks.queued === 0 && one;
      });
      expect(done).toMatchObject({ branchCount: 2, usage: { totalTokens: expect.any(Number) } });
      const plain = (await g.ask("GET", "/sessions")).body.sessions;
      for (const key of ["title", "marks", "branchCount", "usage"]) expect(plain[0]).not.toHaveProperty(key);
      expect((await g.ask("GET", "/sessions?include=everything")).status).toBe(400);
    });

    test("3.3, 3.16 sessions are found by words in their titles, given or first said", async () => {
      const g = await given(["Hello."], { open });
      for (let i = 0; i < 5; i++) {
        const title = i % 2 === 0 ? `Holiday plan ${i}` : `Tax ${i}`;
        await g.ask("POST", "/sessions", { sessionId: `t${i}`, metadata: { title, kind: "x" } });
      }
      await say(g, "What is the PLAN for the holiday?");
      const find = async (body: object) => (await g.ask("POST", "/sessions/search", body)).body;
      const ids = ({ sessions }: { sessions: { id: string }[] }) => sessions.map(({ id }) => id).sort();
      expect(ids(await find({ title: "holiday PLAN" }))).toEqual(["s", "t0", "t2", "t4"]);
      expect(ids(await find({ title: "holiday", metadata: { kind: "x" } }))).toEqual(["t0", "t2", "t4"]);
      expect(ids(await find({ title: "nothing of the kind" }))).toEqual([]);
      const first = await find({ title: "plan", limit: 3, include: ["title"] });
      expect(first.sessions[0].title).toBeTypeOf("string");
      const rest = await find({ title: "plan", limit: 3, cursor: first.cursor });
      expect([...ids(first), ...ids(rest)].sort()).toEqual(["s", "t0", "t2", "t4"]);
    });
  });

  describe("branches and logs", () => {
    test("4.1 only branches that changed since a time", async () => {
      const g = await given(["Hello.", "There."], { open });
      await say(g, "Hi");
      await g.ask("POST", `${scope}/fork`, { newBranchId: "f" });
      const before = Math.max(...(await branchesOf(g)).map((each: { lastActivity: number }) => each.lastActivity));
      await until(() => Date.now() > before + 1);
      await say(g, "Hi", at("f"));
      const changed = (await g.ask("GET", `${session}/branches?changedSince=${before + 1}`)).body.branches;
      expect(changed.map(({ id }: { id: string }) => id)).toEqual(["f"]);
    });

    test("4.11 events are read from the newest on, and several types at once", async () => {
      const g = await given(["One.", "Two."], { open });
      for (const input of ["First", "Second"]) await say(g, input);
      const all = (await g.ask("GET", `${main}/events`)).body.events;
      const back = [];
      for (let before = ""; ; ) {
        const page = (await g.ask("GET", `${main}/events?order=newest&limit=3${before}`)).body;
        back.push(...page.events);
        if (page.before === undefined) break;
        before = `&before=${page.before}`;
      }
      expect(back.reverse()).toEqual(all);
      const types = "types=turn.started,turn.committed";
      const seqs = all.filter(({ type }: { type: string }) => /^turn\.(started|committed)$/.test(type));
      expect((await g.ask("GET", `${main}/events?${types}`)).body.events).toEqual(seqs);
      const newest = (await g.ask("GET", `${main}/events?${types}&order=newest&limit=1`)).body;
      expect(newest.events).toEqual(seqs.slice(-1));
    });

    test("4.10, 6.1 pages know where they are, and the state can be of an earlier page", async () => {
      const g = await given(["One.", "Two.", "Three."], { open });
      for (const input of ["1", "2", "3"]) await say(g, input);
      const { messages: all } = (await g.ask("GET", `${main}/messages`)).body;
      const page = (await g.ask("GET", `${main}/messages?last=2&before=${all[4].id}`)).body;
      expect(page).toMatchObject({ firstIndex: 2, messages: all.slice(2, 4) });
      expect((await g.ask("GET", `${scope}/state?last=3`)).body).toMatchObject({
        firstIndex: 3,
        messages: all.slice(3),
      });
      const earlier = (await g.ask("GET", `${scope}/state?last=2&before=${all[3].id}`)).body;
      expect(earlier).toMatchObject({ firstIndex: 1, messages: all.slice(1, 3), before: all[1].id });
      expect((await g.ask("GET", `${scope}/state?before=nobody`)).status).toBe(404);
    });

    test("1.14 long answers are compressed for those who take it, and no others", async () => {
      const g = await given([`${"long ".repeat(2000)}.`], { open });
      await say(g, "Hi");
      const [path, gzip] = [`${main}/messages`, { "accept-encoding": "br;q=1, gzip" }];
      const headers = { authorization: `Bearer ${g.server.token}` };
      const taken = await fetch(g.serving.url + path, { headers: { ...headers, ...gzip } });
      expect(taken.headers.get("content-encoding")).toBe("gzip");
      expect(taken.headers.get("vary")).toContain("accept-encoding");
      expect(taken.headers.get("content-length")).toBeNull();
      const plain = await g.ask("GET", path);
      expect(plain.headers.get("content-encoding")).toBeNull();
      expect(await taken.json()).toEqual(plain.body);
      const refused = await g.ask("GET", path, undefined, { "accept-encoding": "gzip;q=0" });
      expect(refused.headers.get("content-encoding")).toBeNull();
      for (const short of ["/health", "/sessions/nobody"]) {
        expect((await g.ask("GET", short, undefined, gzip)).headers.get("content-encoding")).toBeNull();
      }
    });
  });
}
