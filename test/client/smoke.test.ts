import { expect, test } from "vitest";
import { WebSocket } from "ws";
import { createClient } from "../../src/client/index.ts";
import type { BoughEvent } from "../../src/events/index.ts";
import { given, serving } from "../server/kit.ts";

test.each(["sse", "websocket"] as const)("a conversation over %s", async (transport) => {
  const g = await given(["Hello there."]);
  const { url } = await serving(g);
  const client = createClient({ url, token: g.server.token!, transport, WebSocket });
  const branch = client.open({ agentId: "helper", sessionId: "s" });
  const seen: BoughEvent[] = [];
  const live = branch.watch();
  live.subscribe(() =>
    console.log(
      live.current.status,
      live.current.connection.state,
      live.current.streaming[0]?.text,
      live.current.messages.length,
    ),
  );
  await branch.submit("Hi");
  for await (const event of branch.listen()) {
    seen.push(event);
    if (event.type === "run-end" || event.type === "turn.committed") break;
  }
  expect(seen.filter((e) => e.seq).map((e) => e.seq)).toEqual([1, 2, 3, 4, 5]);
});
