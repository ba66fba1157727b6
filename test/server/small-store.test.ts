// A server on a store that leaves out every optional part of the port: it serves, and says what it can't keep.

import { test } from "vitest";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { expectProblem, given, isEvent, say, scope } from "./kit.ts";

test("turns and streams work, and content is refused", async () => {
  const store = Object.assign(memoryStore(), { content: undefined });
  const g = await given(["Hello."], { store });
  const live = await g.liveHere(`${scope}/events/live`);
  await say(g, "Hi");
  await live.until(isEvent("turn.committed"));
  const form = new FormData();
  form.set("file", new Blob(["bytes"], { type: "text/plain" }), "a.txt");
  const content = "/sessions/s/branches/main/content";
  for (const answer of [await g.ask("GET", content), await g.ask("POST", content, form)]) {
    expectProblem(answer, 501, "store_unsupported");
  }
});
