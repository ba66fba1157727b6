// A server that stops: who listens hears the end of what was running.

import { expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../src/index.ts";
import { serve } from "../../src/server/index.ts";
import { given, isEvent, LiveStream, scope } from "./kit.ts";

test.each(["memory", "sqlite"] as const)(
  "6.11 readers get every fact of a run that ends while a server on %s closes",
  async (kind) => {
    let finish = () => {};
    const work = defineTool({
      input: z.object({}),
      execute: () =>
        new Promise<string>((resolve) => {
          finish = () => resolve("done");
        }),
    });
    const script = [{ calls: [{ name: "work", input: {} }] }, "All is said."];
    const { server } = await given(script, { kind, agent: { tools: { work } } });
    const serving = await serve(server, { port: 0 });
    const headers = { authorization: `Bearer ${server.token}`, "content-type": "application/json" };
    const live = new LiveStream(await fetch(`${serving.url}${scope}/events/live`, { headers }));
    await fetch(`${serving.url}${scope}/inputs`, { method: "POST", headers, body: '{"input":"Go."}' });
    await live.until(isEvent("tool-start"));

    const closed = serving.close({ drainMs: 60_000 });
    finish();
    await live.toEnd();
    await closed;

    expect(live.types.filter((type) => type.includes(".")).at(-1)).toBe("turn.committed");
    expect(live.frames.at(-1)).toMatchObject({ type: "end", reason: "closing" });
  },
);
