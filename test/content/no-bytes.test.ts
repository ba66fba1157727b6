// No fact holds bytes over 1 KB: the same picture through every door of the sessions and of agents, and then a look at every fact
// that is in the store. Doors of single runs are in doors.test.ts as well, each with what is particular about it.

import { expect, test } from "vitest";
import { contentIdOf, type FilePart, filesOf } from "../../src/events/files.ts";
import { type Agent, createAgent, defineTool, type InputMessage, openSessions, subagent } from "../../src/index.ts";
import { everySession } from "../../src/log/every-session.ts";
import type { Store } from "../../src/log/store.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { eventsOf, given, main, s } from "../agent/kit.ts";
import { base64, bigPng } from "./files.ts";

const picture = bigPng(30_000);
const secret = base64(picture).slice(4_000, 4_060);
const file = { type: "file", mediaType: "image/png", filename: "p.png", data: picture } as const;
const asked: InputMessage = { role: "user", content: [{ type: "text", text: "Look." }, file] };
const said: InputMessage = { role: "assistant", content: [file] };
const called = { type: "tool-call", toolCallId: "c", toolName: "look", input: {} } as const;
const shown = {
  type: "content",
  value: [{ type: "file", mediaType: "image/png", data: { type: "data", data: picture } }],
};
const returned = { type: "tool-result", toolCallId: "c", toolName: "look", output: shown } as never;
const script = [{ calls: [{ name: "look", input: {} }] }, "Yes.", "Yes."];
const look = defineTool({
  description: "Looks.",
  input: { jsonSchema: { type: "object", properties: {} } },
  execute: () => shown,
  toOutput: (output) => output as never,
});

/** What each does puts the picture into a message of the branch main. */
const doors: Record<string, (agent: Agent, store: Store) => Promise<unknown>> = {
  appendTurn: (agent) => agent.appendTurn("s", [asked, said]),
  "appendTurn, a tool's result": (agent) =>
    agent.appendTurn("s", [asked, { role: "assistant", content: [called] }, { role: "tool", content: [returned] }]),
  beginTurn: async (agent) => (await agent.beginTurn("s", [asked])).commit(),
  "add of a turn": async (agent) => {
    const turn = await agent.beginTurn("s", "Look.");
    await turn.add(said);
    await turn.commit();
  },
  "toolReturned of a turn": async (agent) => {
    const turn = await agent.beginTurn("s", "Look.");
    await turn.add({ role: "assistant", content: [called] });
    // Not waited for: the close is.
    void turn.toolReturned({ callId: "c", toolName: "look", output: shown as never });
    await turn.commit();
  },
  "commit of a turn": async (agent) => (await agent.beginTurn("s", "Look.")).commit({ messages: [said] }),
  "stage of a turn": async (agent) => {
    await (await agent.beginTurn("s", "Look.")).stage({ messages: [said] });
    await agent.loadSessionAndBranch("s").then(({ session, branch }) => agent.saveSessionAndBranch(session, branch));
  },
  "end of a turn": async (agent) => (await agent.beginTurn("s", "Look.")).end({ status: "failed", messages: [said] }),
  // Without an agent, which would take them.
  queueInput: async (_, store) => {
    const sessions = await openSessions(store);
    await sessions.queueInput("s", [asked]);
    await (await sessions.takeInputs("s"))!.commit();
  },
  editInput: async (_, store) => {
    const sessions = await openSessions(store);
    const { inputId } = await sessions.queueInput("s", "Wait.");
    await sessions.editInput("s", inputId, { input: [asked] });
    await (await sessions.takeInputs("s"))!.commit();
  },
  run: (agent) => agent.run([asked], s).text(),
  "a tool": (agent) => agent.run("Look.", s).text(),
};

async function everyFact(store: Store): Promise<string[]> {
  const facts: string[] = [];
  for await (const { id: sessionId } of everySession(store)) {
    for (const branch of await store.listBranches(sessionId)) {
      for (const { data } of await store.read(branch)) facts.push(data);
    }
  }
  return facts;
}

function expectNoBytes(facts: readonly string[]): void {
  expect(facts.length).toBeGreaterThan(0);
  for (const fact of facts) {
    expect(fact).not.toContain(secret);
    expect(fact.match(/[A-Za-z0-9+/=]{1000,}|(\d+,){300}/)).toBeNull();
  }
}

test.each(Object.keys(doors))("%s: the log has a reference", async (door) => {
  const { agent, store } = await given(script, { tools: { look } });
  await doors[door]!(agent, store);
  expectNoBytes(await everyFact(store));
  const files = (await agent.loadBranch(main)).messages.flatMap(filesOf);
  expect(files.length).toBeGreaterThan(0);
  for (const each of files) {
    const stored = await agent.getContent(main, contentIdOf(each)!);
    expect(Buffer.from(await stored.bytes()).equals(picture)).toBe(true);
  }
});

test("a subagent that is shown a picture, and one that makes one", async () => {
  const model = scriptedModel([{ text: "Here.", files: [{ mediaType: "image/png", data: picture }] }]);
  const child = subagent(createAgent({ name: "child", model }), { description: "Draws.", permission: false });
  const { agent, store } = await given([{ calls: [{ name: "child", input: { input: "Draw." } }] }, "Done."], {
    tools: { child },
  });
  await agent.run([asked], s).text();
  expectNoBytes(await everyFact(store));
});

test("what steers a running turn", async () => {
  const { agent, store } = await given([{ calls: [{ name: "wait", input: {} }] }, "Seen."], {
    tools: {
      wait: defineTool({
        description: "Waits.",
        input: { jsonSchema: { type: "object", properties: {} } },
        execute: async () => {
          await agent.submit([asked], { ...s, ifActive: "steer" });
          return "waited";
        },
      }),
    },
  });
  await eventsOf(agent.run("Go.", s));
  expectNoBytes(await everyFact(store));
  expect((await agent.loadBranch(main)).messages.flatMap(filesOf)).toHaveLength(1);
});

test("references through these doors have to lead to what the branch sees", async () => {
  const { agent } = await given([]);
  const url = `bough-content://sha256/${"a".repeat(64)}`;
  const foreign = {
    role: "user",
    content: [{ type: "file", mediaType: "image/png", data: { type: "url", url } }],
  } as InputMessage;
  const before = (await agent.events(main)).length;
  const refusal = { code: "content_not_found" };
  await expect(agent.appendTurn("s", [foreign])).rejects.toMatchObject(refusal);
  await expect(agent.beginTurn("s", [foreign])).rejects.toMatchObject(refusal);
  await expect(agent.queueInput("s", [foreign])).rejects.toMatchObject(refusal);
  expect(await agent.events(main)).toHaveLength(before);
  const turn = await agent.beginTurn("s", "Go.");
  await expect(turn.add(foreign)).rejects.toMatchObject(refusal);
  // The turn goes on as if nothing had been said.
  await turn.commit({ messages: [{ role: "assistant", content: "Done." }] });
  const { messages } = await agent.loadBranch(main);
  expect(messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
  expect(messages.flatMap(filesOf) satisfies FilePart[]).toEqual([]);
});
