// Files that a request names instead of carrying: ids at the provider, and addresses of a bucket.

import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { LLMock } from "@copilotkit/aimock";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { s3Blobs } from "../../src/blobs/s3/index.ts";
import { filesOf } from "../../src/events/files.ts";
import { defineTool, type LanguageModel, type Message } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { manualClock, type ScriptedModel, scriptedModel } from "../../src/testing/index.ts";
import { eventsOf, given, main, ofType, s } from "../agent/kit.ts";
import { keys, S3Service } from "../stores/s3-service.ts";
import { bigPng, pdf, png } from "./files.ts";

const image = png();
const picture = { type: "file", mediaType: "image/png", filename: "tree.png", data: image } as const;

/** A provider's files, as the AI SDK has them. */
function providerFiles(provider: string, { expiresAt }: { expiresAt?: () => Date } = {}) {
  const uploads: { bytes: Uint8Array; mediaType: string; filename?: string; providerOptions?: object }[] = [];
  return {
    provider,
    uploads,
    error: undefined as Error | undefined,
    async uploadFile({ data, ...about }: { data: { data: Uint8Array }; mediaType: string }) {
      if (this.error) throw this.error;
      uploads.push({ bytes: data.data, ...about });
      const family = provider.split(".")[0]!;
      return {
        providerReference: { [family]: `file-${uploads.length}` },
        ...(expiresAt && { expiresAt: expiresAt() }),
      };
    },
  };
}

const openai = (model: ScriptedModel, more: Partial<LanguageModel> = {}): LanguageModel => ({
  ...model,
  provider: "openai.responses",
  ...more,
});
const dataOf = ({ prompt }: ScriptedModel["calls"][number]) =>
  prompt.flatMap((message) => filesOf(message as Message)).map(({ data }) => data);
const first = { type: "reference", reference: { openai: "file-1" } };

describe("ids at the provider", () => {
  test("are made once, sent again in later turns, on forks and by other processes, and are not in the log", async () => {
    const files = providerFiles("openai.files");
    const script = scriptedModel(["A.", "B.", "C."]);
    const content = { files, uploadOptions: { openai: { expiresAfter: 3600 } } };
    const { agent, again } = await given([], { model: openai(script), content });
    await agent.run([picture], s).text();
    await agent.run("Again.", s).text();
    const fork = await agent.forkBranch("s", { newBranchId: "fork" });
    await agent.run("On the fork.", { sessionId: "s", branchId: fork.id }).text();
    expect(script.calls.map(dataOf)).toEqual([[first], [first], [first]]);
    const restarted = scriptedModel(["D."]);
    await again({ model: openai(restarted) })
      .run("After a restart.", main)
      .text();
    expect(restarted.calls.map(dataOf)).toEqual([[first]]);
    const [upload] = files.uploads;
    expect(files.uploads).toHaveLength(1);
    expect(upload).toMatchObject({
      mediaType: "image/png",
      filename: "tree.png",
      providerOptions: content.uploadOptions,
    });
    expect(Buffer.compare(upload!.bytes, image)).toBe(0);
    expect(JSON.stringify(await agent.events(main, { limit: 1000 }))).not.toContain("file-1");
  });

  test("that expire are made again in time, within a run as well", async () => {
    const clock = manualClock();
    const files = providerFiles("openai.files", { expiresAt: () => new Date(clock.now() + 3_600_000) });
    const script = scriptedModel((prompt) => {
      if (prompt.at(-1)!.role === "tool") return "Late.";
      clock.advance(3_000_001);
      return { calls: [{ name: "wait", input: {} }] };
    });
    const wait = defineTool({ description: "Waits.", input: z.object({}), execute: () => "waited" });
    const store = memoryStore({ clock });
    const { agent } = await given([], {
      model: openai(script),
      store,
      clock,
      content: { files },
      tools: { wait },
      leaseMs: 1e7,
    });
    await agent.run([picture], s).text();
    expect(script.calls.flatMap(dataOf)).toEqual([first, { type: "reference", reference: { openai: "file-2" } }]);
  });

  test("that the provider has lost are made again", async () => {
    const files = providerFiles("openai.files");
    const script = scriptedModel((prompt) =>
      JSON.stringify(prompt).includes("file-1")
        ? { error: { statusCode: 404, message: "No such File object: file-1" } }
        : "Yes.",
    );
    const { agent } = await given([], { model: openai(script), content: { files } });
    expect(await agent.run([picture], s).text()).toBe("Yes.");
    expect(script.calls).toHaveLength(2);
    expect(files.uploads).toHaveLength(2);
    expect(await agent.run("And again?", s).text()).toBe("Yes.");
    expect(files.uploads).toHaveLength(2);
  });

  test("that can't be made are told, and the bytes are sent", async () => {
    const files = providerFiles("openai.files");
    files.error = new Error("quota");
    const script = scriptedModel(["Yes."]);
    const { agent } = await given([], { model: openai(script), content: { files } });
    const events = await eventsOf(agent.run([picture], s));
    expect(ofType(events, "content-fail")).toMatchObject([{ error: { message: "quota" } }]);
    expect(script.calls.flatMap(dataOf)).toMatchObject([{ type: "data" }]);
  });

  test("are for the models of that provider, of version 4, and for what users send", async () => {
    const files = [providerFiles("openai.files"), providerFiles("anthropic.messages")];
    const look = defineTool({
      description: "Looks.",
      input: z.object({}),
      execute: () => ({ type: "content", value: [picture] }),
      toOutput: (output) => output as never,
    });
    const kinds = async (provider: string, specificationVersion: "v3" | "v4" = "v4") => {
      const script = scriptedModel([{ calls: [{ name: "look", input: {} }] }, "Yes."], { specificationVersion });
      const model = { ...script, provider };
      const { agent } = await given([], { model, content: { files }, tools: { look } });
      await agent.run([picture], s).text();
      return dataOf(script.calls[1]!).map(
        (data) => data.type ?? ((data as unknown) instanceof Uint8Array ? "bytes" : "?"),
      );
    };
    expect(await kinds("openai.responses")).toEqual(["reference", "data"]);
    expect(await kinds("anthropic.messages")).toEqual(["reference", "data"]);
    expect(await kinds("somebody.chat")).toEqual(["data", "data"]);
    expect(await kinds("openai.chat")).toEqual(["data", "data"]);
    expect((await kinds("openai.responses", "v3"))[0]).toBe("bytes");
    expect(files[1]!.uploads).toHaveLength(1);
  });

  test.each([[{ files: 1 }], [{ files: [{}] }], [{ uploadOptions: "x" }]])(
    "options %j are refused",
    async (content) => {
      await expect(given([], { content: content as never })).rejects.toMatchObject({ code: "invalid_argument" });
    },
  );
});

describe("ids of real providers", () => {
  const mock = new LLMock({ port: 0 });
  const sent: string[] = [];
  beforeAll(() => mock.start());
  afterAll(() => mock.stop());

  /** What the providers answer to an upload; the mock knows only models. */
  const withFiles: typeof fetch = async (input, init) => {
    const url = String(input instanceof Request ? input.url : input);
    if (/\/v1\/files$/.test(url))
      return Response.json({
        id: "file-77",
        object: "file",
        type: "file",
        filename: "a",
        size_bytes: 3,
        mime_type: "application/pdf",
        created_at: new Headers(init?.headers).has("x-api-key") ? "2026-01-01T00:00:00Z" : 1_700_000_000,
      });
    if (/\/upload\/v1beta\/files$/.test(url))
      return new Response("", { headers: { "x-goog-upload-url": `${mock.url}/put-here` } });
    if (url.endsWith("/put-here"))
      return Response.json({
        file: { name: "files/f77", uri: "https://files.test/f77", state: "ACTIVE", mimeType: "application/pdf" },
      });
    sent.push(String(init?.body));
    return fetch(input, init);
  };

  test.each([
    ["openai", /"file_id":"file-77"/],
    ["openai chat", /"file_id":"file-77"/],
    ["anthropic", /"source":\{"type":"file","file_id":"file-77"\}/],
    ["google", /"fileUri":"https:\/\/files\.test\/f77"/],
  ] as const)("%s", async (name, wanted) => {
    sent.length = 0;
    mock.on({ userMessage: "look" }, { content: "Seen." });
    const address = { baseURL: `${mock.url}/v1`, apiKey: "none", fetch: withFiles };
    const open = createOpenAI(address);
    const anthropic = createAnthropic(address);
    const google = createGoogleGenerativeAI({ ...address, baseURL: `${mock.url}/v1beta` });
    const [model, files] = {
      openai: [open("gpt-5"), open.files()] as const,
      "openai chat": [open.chat("gpt-4o"), open.files()] as const,
      anthropic: [anthropic("claude-sonnet-4-5"), anthropic.files()] as const,
      google: [google("gemini-2.5-flash"), google.files()] as const,
    }[name];
    const { agent } = await given([], { model, content: { files }, retry: { attempts: 1 } });
    const document = { type: "file", mediaType: "application/pdf", filename: "a.pdf", data: pdf("Oaks.") } as const;
    await agent.run([{ type: "text", text: "look" }, document], s).text();
    expect(sent.at(-1)).toMatch(wanted);
    expect(sent.at(-1)).not.toContain("bough-content");
    mock.clearFixtures();
  });
});

describe("addresses of a bucket", () => {
  const service = new S3Service();
  let endpoint: string;
  beforeAll(async () => {
    endpoint = await service.start();
  });
  afterAll(() => service.stop());

  const large = { type: "file", mediaType: "image/png", filename: "large.png", data: bigPng(3_000, 1) } as const;
  const givenBucket = async (supported: RegExp, content: object = { inline: { perFile: 2_000 } }) => {
    service.reset();
    const clock = manualClock(Date.now());
    const blobs = s3Blobs({
      bucket: "trees",
      region: "eu-central-1",
      endpoint,
      credentials: keys,
      signUrls: true,
      clock,
    });
    const script = scriptedModel(() => "Yes.");
    const model = { ...script, provider: "somebody", supportedUrls: { "image/*": [supported] } };
    return {
      ...(await given([], { model, store: memoryStore({ clock, blobs }), clock, content })),
      script,
      model,
      clock,
    };
  };
  const urlsOf = (call: ScriptedModel["calls"][number]) =>
    dataOf(call).map(({ type, url }) => (type === "url" ? String(url) : type));

  test("are sent for files that are too large, stay the same, and lead to the bytes", async () => {
    const { agent, script, clock, again, model } = await givenBucket(/^http:\/\/127/);
    await agent.run([large, picture], s).text();
    clock.advance(60_000);
    const restarted = scriptedModel(["Yes."]);
    await again({ model: { ...model, ...restarted, provider: "somebody" } })
      .run("Again.", s)
      .text();
    const [url, small] = urlsOf(script.calls[0]!);
    expect(small).toBe("data");
    expect(urlsOf(restarted.calls[0]!)).toEqual([url, "data"]);
    const downloaded = await fetch(url!);
    expect(downloaded.headers.get("content-type")).toBe("image/png");
    expect(Buffer.compare(new Uint8Array(await downloaded.arrayBuffer()), large.data)).toBe(0);
    expect(JSON.stringify(await agent.events(main, { limit: 100 }))).not.toContain("X-Amz");
  });

  test("are sent for the oldest files when there are too many bytes", async () => {
    const { agent, script } = await givenBucket(/^http:/, { inline: { perCall: 4_000 } });
    for (let i = 1; i <= 3; i++) await agent.run([{ ...large, data: bigPng(1_500, i) }], s).text();
    expect(urlsOf(script.calls[2]!).map((each) => String(each).slice(0, 5))).toEqual(["http:", "http:", "data"]);
  });

  test("are a note for a model that doesn't open them", async () => {
    const { agent, script } = await givenBucket(/^https:/);
    await agent.run([large], s).text();
    expect(JSON.stringify(script.calls[0]!.prompt)).toContain(
      "[image large.png, 3.0 KB: not sent (too large for this call)]",
    );
  });
});
