// What is deleted is gone from every file of the store, its redo log included.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { fileStore } from "../../src/stores/file/index.ts";
import { putBytes } from "../../src/testing/content.ts";
import { claimSlot } from "../../src/testing/contract/kit.ts";
import { content, facts, filesIn, givenSession, idOf, temporary } from "./kit.ts";

const canary = "CANARY-4111111111111111";

/** The files that hold the canary, in their bytes or in their names. */
function holders(base: string): string[] {
  return filesIn(base).filter((file) => file.includes(canary) || readFileSync(join(base, file)).includes(canary));
}

test("after delete and maintain no byte of a deleted session is in any file", async () => {
  const base = temporary();
  const store = await fileStore(base);
  for (const id of [`${canary}-1`, "stays", `${canary}-2`]) {
    const text = id.startsWith(canary) ? canary : "harmless";
    const ref = await givenSession(store, id, facts("e", 20, text));
    await store.updateSession(id, { metadata: { text }, state: { text } });
    await putBytes(store, ref, { ...content(text.repeat(100)), name: text });
    await store.saveCheckpoint(ref, { id: text, seq: 1, data: { text } });
    await store.segments!.save(ref, { to: 10, lines: [JSON.stringify(text)] });
    const { epoch } = await claimSlot(store, ref, { runId: "r", owner: text, leaseMs: 60_000 });
    await store.releaseRun(ref, { epoch });
  }
  expect(holders(base).length).toBeGreaterThan(5);
  await store.deleteSession(`${canary}-1`);
  await store.deleteSession(`${canary}-2`);
  expect((await store.maintain()).problems).toEqual([]);
  expect(holders(base)).toEqual([]);
  await store.close();
  expect(holders(base)).toEqual([]);
});

test("after close no byte of a deleted branch or of deleted content is in any file", async () => {
  const base = temporary();
  const store = await fileStore(base);
  const main = await givenSession(store, "s", facts("e", 3));
  await putBytes(store, main, { ...content(canary.repeat(50)), name: canary });
  await store.createBranch("s", { id: "b", header: { text: canary }, events: facts("f", 3, canary) });
  expect(holders(base).length).toBeGreaterThan(2);
  await store.content!.delete(main, idOf(canary.repeat(50)));
  await store.deleteBranch({ sessionId: "s", branchId: "b" });
  await store.close();
  expect(holders(base)).toEqual([]);
});
