// A small store with a known history, made in this process: the ground for showing that the checker sees what is wrong.

import { spawnSync } from "node:child_process";
import { hostname } from "node:os";
import { openSessions } from "bough";
import { History } from "./history.mjs";
import { HostClock, openStoreAt } from "./stores.mjs";
import { traced } from "./trace.mjs";

/** The facts of the last append on "main", which nobody forked. */
export const lastBatch = 4;

/** Makes the store at `path`; `midway(path)` is called while it is closed, before the last things happen. */
export async function makeScenario({ name, path, midway = () => {} }) {
  const history = new History();
  const clock = new HostClock();
  // Whoever wrote it is dead, so what it held can be taken over.
  const owner = `${hostname()}/${spawnSync(process.execPath, ["--version"]).pid}`;
  let count = 0;
  const ids = { next: () => `e${++count}` };
  const open = async () => {
    const store = await openStoreAt(name, path, clock);
    const emit = (told) => history.add(JSON.parse(JSON.stringify({ ...told, writer: 1 })));
    return openSessions(traced(store, { emit, clock, isReused: () => false }), { clock, ids, owner });
  };
  const before = await open();
  await begin(before);
  await before.close();
  midway(path);
  const after = await open();
  await goOn(after);
  await after.close();
  history.add({ died: 0, writer: 1 });
  return { history, clock };
}

async function begin(sessions) {
  await sessions.createSession("s", { metadata: { title: "old" } });
  const main = { sessionId: "s", branchId: "main" };
  await sessions.appendTurn(main, say("Hello", "Hi"));
  const turn = await sessions.beginTurn(main, "Add them up");
  const call = (id) => ({ type: "tool-call", toolCallId: id, toolName: "add", input: {} });
  await turn.add({ role: "assistant", content: [call("c1"), call("c2")] });
  await turn.toolReturned({ callId: "c2", toolName: "add", output: { type: "text", value: "4" } });
  await turn.toolReturned({ callId: "c1", toolName: "add", output: { type: "text", value: "3" } });
  await turn.commit({ messages: [{ role: "assistant", content: "7" }], state: { sum: 7 } });
  await sessions.saveCheckpoint(main, { id: "mark" });
  await sessions.putContent(main, { bytes: Buffer.from("bytes"), mediaType: "text/plain" });
  await sessions.createSession("held");
  await sessions.beginTurn({ sessionId: "held" }, "Wait here");
}

async function goOn(sessions) {
  await sessions.updateSession("s", { metadata: { title: "new" } });
  await sessions.forkBranch({ sessionId: "s", branchId: "main" }, { fromMessageIndex: 2, newBranchId: "fork" });
  await sessions.appendTurn({ sessionId: "s", branchId: "fork" }, say("Formally?", "Good day"));
  await sessions.updateBranch({ sessionId: "s", branchId: "main" }, { metadata: { seen: true } });
  await sessions.appendTurn({ sessionId: "s", branchId: "main" }, say("One more", "Done"));
}

function say(question, answer) {
  return [
    { role: "user", content: question },
    { role: "assistant", content: answer },
  ];
}
