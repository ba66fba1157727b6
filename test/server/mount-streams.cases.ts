// Streams of mounts: clause 11.3 of PROTOCOL.md. What they hold, and when it is given back.

import { expect, onTestFinished, test } from "vitest";
import { type Server, serve } from "../../src/server/index.ts";
import { askAt, expectProblem, gate, type OpenStore, requestOf, until } from "./kit.ts";
import { get, givenMounts as given, mountOf, talk, watchRoute } from "./mount-kit.ts";

const openStreams = (server: Server, tenant: string) =>
  until(async () => {
    const response = await server.fetch(
      requestOf("GET", "/agents/helper/sessions/s/branches/main/events/live", undefined, { "x-api-key": tenant }),
    );
    await response.body!.cancel();
    return response.status === 200;
  });

export function describeMountStreams(open: OpenStore): void {
  test("11.3 a stream of a mount gives its place back when its reader goes away, and its iterator ends", async () => {
    const over = gate();
    const endless = get("endless", ({ tenant, signal }) => ({
      events: (async function* () {
        try {
          const place = { agentId: "helper", sessionId: "s", branchId: "main" };
          for await (const { type } of await tenant.watch(place)) yield { data: type };
        } finally {
          expect(signal.aborted).toBe(true);
          over.open();
        }
      })(),
    }));
    const { server, fetch, ask } = await given(open, mountOf(endless), { limits: { streams: 1 } });
    const response = await fetch("GET", "/chat/endless");
    const reader = response.body!.getReader();
    expect(new TextDecoder().decode((await reader.read()).value)).toContain("data: ");
    expectProblem(await ask("GET", "/chat/endless"), 429, "rate_limited");
    await reader.cancel();
    await over.passed;
    await openStreams(server, "a");
  });

  test("11.3 a stream of a mount ends over a connection, too, when the client closes it", async () => {
    const over = gate();
    const signals: AbortSignal[] = [];
    const endless = get("endless", ({ tenant, signal }) => {
      signals.push(signal);
      return {
        events: (async function* () {
          try {
            const place = { agentId: "helper", sessionId: "s", branchId: "main" };
            for await (const { type } of await tenant.watch(place)) yield { data: type };
          } finally {
            over.open();
          }
        })(),
      };
    });
    const { server } = await given(open, mountOf(endless), { limits: { streams: 1 } });
    const serving = await serve(server, { port: 0 });
    onTestFinished(() => serving.close());
    // The kit leaves a stream as soon as it has its head.
    const { status, headers } = await askAt(serving.url, "GET", "/chat/endless", undefined, { "x-api-key": "a" });
    expect(status).toBe(200);
    expect(headers.get("content-type")).toMatch(/^text\/event-stream/);
    await over.passed;
    expect(signals[0]!.aborted).toBe(true);
    await openStreams(server, "a");
  });

  test("11.3 a stream of a mount has heartbeats, and ends within one of the credential's being revoked", async () => {
    const { fetch, revoked, audit } = await given(open, mountOf(talk, watchRoute), { limits: { heartbeatMs: 50 } });
    const response = await fetch("GET", "/chat/watch/s");
    let told = "";
    const decoder = new TextDecoder();
    const reader = response.body!.getReader();
    const read = async () => {
      const { done, value } = await reader.read();
      told += decoder.decode(value);
      return done;
    };
    while (!told.includes(":\n\n") && !told.includes(": ")) await read();
    revoked.add("a");
    while (!(await read()));
    revoked.delete("a");
    const ends = (await audit()).filter(({ action, status }) => action === "chat.watch" && status === 401);
    expect(ends).toHaveLength(1);
  });

  test("11.3 a stream of a mount ends with an error event when its iterator fails, and tells nothing of an unknown failure", async () => {
    const failing = get("failing", () => ({
      events: (async function* () {
        yield { data: "one\ntwo\r\nthree", event: "a\nb" };
        throw new Error("the password is x");
      })(),
    }));
    const { ask } = await given(open, mountOf(failing));
    const { status, body } = await ask("GET", "/chat/failing");
    expect(status).toBe(200);
    expect(body).toMatch(/^event: ab\ndata: one\ndata: two\ndata: three\n\nevent: error\ndata: \{.*"server_failed"/);
    expect(body).not.toContain("password");
  });

  test("11.3 a stream of a mount asks its iterator for no more than the client takes", async () => {
    let made = 0;
    const fast = get("fast", () => ({
      events: (async function* () {
        for (; made < 10_000; made++) yield { data: "x".repeat(1000) };
      })(),
    }));
    const { fetch } = await given(open, mountOf(fast));
    const response = await fetch("GET", "/chat/fast");
    const reader = response.body!.getReader();
    await reader.read();
    await new Promise((resolve) => setImmediate(resolve));
    expect(made).toBeLessThan(300);
    await reader.cancel();
  });

  test("11.3 a stream of a mount ends with the server, told that it closes", async () => {
    const { server, fetch } = await given(open, mountOf(watchRoute));
    const told = (await fetch("GET", "/chat/watch/s")).text();
    await new Promise((resolve) => setImmediate(resolve));
    await server.close();
    expect(await told).toContain("event: gone\ndata: closing");
  });
}
