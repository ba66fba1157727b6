// Files over HTTP: inline and by reference, within the limits of requests, and of one tenant only.

import { describe, expect, test } from "vitest";
import { scriptedModel } from "../../src/testing/index.ts";
import { given, type LiveStream, scope } from "../server/kit.ts";
import { base64, bigPng, png } from "./files.ts";

const image = png(64, 64);
const content = "/sessions/s/branches/main/content";

async function untilEnd(stream: LiveStream): Promise<void> {
  await stream.until((frame) => (frame as { event?: { type?: string } }).event?.type === "run-end");
}

const forms: Record<string, unknown> = {
  base64: base64(image),
  "a data URL": `data:image/png;base64,${base64(image)}`,
  "tagged base64": { type: "data", data: base64(image) },
  "a tagged data URL": { type: "url", url: `data:image/png;base64,${base64(image)}` },
};

describe("an input", () => {
  test.each(Object.keys(forms))("5.2 with a picture as %s reaches the model; the log has a reference", async (form) => {
    const model = scriptedModel(["Seen."]);
    const { ask, live } = await given([], { agent: { model } });
    const stream = await live(`${scope}/events/live`);
    const input = [
      { type: "text", text: "Look." },
      { type: "file", data: forms[form], mediaType: "image/png" },
    ];
    expect(await ask("POST", `${scope}/inputs`, { input })).toMatchObject({ status: 202 });
    await untilEnd(stream);
    expect(model.calls[0]!.prompt[0]!.content).toMatchObject([
      {},
      { type: "file", data: { type: "data", data: image } },
    ]);
    const { body } = await ask("GET", "/sessions/s/branches/main/messages");
    const url = expect.stringMatching(/^bough-content:\/\/sha256\/[0-9a-f]{64}$/);
    expect(body.messages[0].content[1]).toEqual({ type: "file", mediaType: "image/png", data: { type: "url", url } });
    expect((await ask("GET", content)).body.content).toMatchObject([{ size: image.length, mediaType: "image/png" }]);
  });

  test("5.2 refers to an upload, which tells its type and name", async () => {
    const model = scriptedModel(["Seen."]);
    const { ask, live } = await given([], { agent: { model } });
    const upload = await ask("POST", content, new TextEncoder().encode("a,b\n"), { "x-filename": "table.csv" });
    const stream = await live(`${scope}/events/live`);
    const input = [{ type: "file", data: { type: "url", url: upload.body.uri } }];
    expect((await ask("POST", `${scope}/inputs`, { input })).status).toBe(202);
    await untilEnd(stream);
    expect(model.calls[0]!.prompt[0]!.content).toMatchObject([{ mediaType: "text/csv", filename: "table.csv" }]);
  });

  test("5.2 refers to nothing that the branch doesn't see, and begins no turn", async () => {
    const { ask } = await given([]);
    const url = `bough-content://sha256/${"a".repeat(64)}`;
    const answer = await ask("POST", `${scope}/inputs`, {
      input: [{ type: "file", data: url, mediaType: "image/png" }],
    });
    expect(answer).toMatchObject({ status: 404, body: { code: "content_not_found" } });
    expect((await ask("GET", `${scope}/runs`)).body.runs).toEqual([]);
  });

  test("a picture larger than a request may be is refused as any such body", async () => {
    const { ask } = await given([]);
    const data = base64(bigPng(1_200_000));
    const answer = await ask("POST", `${scope}/inputs`, { input: [{ type: "file", data, mediaType: "image/png" }] });
    expect(answer.status).toBe(413);
  });

  test.each([
    "http://example.com/a.png",
    "https://127.0.0.1/a.png",
    "https://0x7f.1/a.png",
    "https://2130706433/",
    "https://[::1]/",
    "https://localhost/",
    "https://metadata.google.internal/",
    "https://user:pass@example.com/",
    "ftp://example.com/a.png",
    "javascript:alert(1)",
  ])("5.10 the address %s is refused", async (url) => {
    const { ask } = await given([]);
    for (const data of [url, { type: "url", url }]) {
      const answer = await ask("POST", `${scope}/inputs`, { input: [{ type: "file", data, mediaType: "image/png" }] });
      expect(answer.status).toBe(400);
    }
  });

  test("5.10 a public address is passed on to a model that opens it; the server opens none", async () => {
    const scripted = scriptedModel(["Seen."]);
    const model = { ...scripted, provider: "somebody", supportedUrls: { "image/*": [/^https:/] } };
    const { ask, live } = await given([], { agent: { model } });
    const stream = await live(`${scope}/events/live`);
    const url = "https://example.com/tree.png";
    const input = [{ type: "file", data: { type: "url", url }, mediaType: "image/png" }];
    expect((await ask("POST", `${scope}/inputs`, { input })).status).toBe(202);
    await untilEnd(stream);
    expect(scripted.calls[0]!.prompt[0]!.content).toMatchObject([{ data: { type: "url", url: new URL(url) } }]);
  });
});

test("content of one tenant is nothing to another, also in an input", async () => {
  const auth = (request: Request) => ({
    tenant: request.headers.get("x-tenant") ?? "a",
    scopes: ["read", "write", "run"] as never,
  });
  const { ask } = await given([], { auth });
  const [a, b] = [{ "x-tenant": "a" }, { "x-tenant": "b" }];
  for (const headers of [a, b]) await ask("POST", "/sessions", { sessionId: "s" }, headers);
  const { body } = await ask("POST", content, image, a);
  const input = [{ type: "file", data: body.uri, mediaType: "image/png" }];
  expect((await ask("POST", `${scope}/inputs`, { input }, b)).body.code).toBe("content_not_found");
});
