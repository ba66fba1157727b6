// The same cases against an agent in this process and against a server, over both transports.

import { expect, onTestFinished, test } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { createAgent } from "../../src/index.ts";
import { scriptedModel } from "../../src/scripted/index.ts";
import { clientOf, transports } from "../client/kit.ts";
import { given, quiet } from "../server/kit.ts";
import { describeHandles } from "./all.cases.ts";

describeHandles("an agent in this process", async (script, options) => {
  const agent = createAgent({ model: scriptedModel(script), logger: quiet, ...options });
  onTestFinished(() => agent.close());
  await agent.createSession("s");
  return {
    branch: (scope) => agent.branch(scope),
    session: (id) => agent.session(id),
    ensureSession: (id, more) => agent.ensureSession(id, more),
  };
});

for (const transport of transports) {
  describeHandles(`a server over ${transport}`, async (script, options) => {
    const client = await clientOf(await given(script, options ? { agent: options } : {}), {
      transport,
      agentId: "helper",
    });
    return {
      branch: (scope) => client.branch(scope),
      session: (id) => client.session(id),
      ensureSession: (id, more) => client.ensureSession(id, more),
    };
  });
}

test("a client that knows no agent says what is missing", () => {
  const client = createClient({ url: "http://127.0.0.1:1" });
  expect(() => client.branch("s")).toThrow(/pass agentId to createClient/);
  expect(client.branch({ agentId: "helper", sessionId: "s" }).scope).toEqual({
    agentId: "helper",
    sessionId: "s",
    branchId: "main",
  });
});

test("run takes a session id as its second argument", async () => {
  const agent = createAgent({ model: scriptedModel(["Hello."]) });
  await agent.createSession("s");
  expect(await agent.run("Hi", "s").text()).toBe("Hello.");
  expect((await agent.loadBranch("s")).messageCount).toBe(2);
  await agent.close();
});
