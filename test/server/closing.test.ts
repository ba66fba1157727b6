// A server that stops: who listens hears the end of what was running.

import { expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../src/index.ts";
import { given, isEvent, openMemory, openSqlite, scope } from "./kit.ts";

test.each(Object.entries({ memory: openMemory, sqlite: openSqlite }))(
  "6.11 readers get every fact of a run that ends while a server on %s closes",
  async (_kind, open) => {
    let finish = () => {};
    const work = defineTool({
      input: z.object({}),
      execute: () =>
        new Promise<string>((resolve) => {
          finish = () => resolve("done");
        }),
    });
    const script = [{ calls: [{ name: "work", input: {} }] }, "All is said."];
    const g = await given(script, { open, agent: { tools: { work } } });
    const live = await g.live(`${scope}/events/live`);
    await g.ask("POST", `${scope}/inputs`, { input: "Go." });
    await live.until(isEvent("tool-start"));

    const closed = g.serving.close({ drainMs: 60_000 });
    finish();
    await live.toEnd();
    await closed;

    expect(live.types.filter((type) => type.includes(".")).at(-1)).toBe("turn.committed");
    expect(live.frames.at(-1)).toMatchObject({ type: "end", reason: "closing" });
  },
);
