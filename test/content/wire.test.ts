// Files through the whole agent and the real provider packages: whatever form the bytes come in, the request has them as the
// provider wants them, and the log has a reference.

import { LLMock } from "@copilotkit/aimock";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { defineTool, type LanguageModel } from "../../src/index.ts";
import { given, main, s } from "../agent/kit.ts";
import { base64, pdf, png, utf8, wav } from "./files.ts";
import { type WireName, wireModels, wireNames } from "./providers.ts";

const mock = new LLMock({ port: 0 });
const sent: unknown[] = [];
let models: Record<WireName, LanguageModel>;
beforeAll(async () => {
  await mock.start();
  models = wireModels(mock, sent);
});
beforeEach(() => {
  mock.clearFixtures();
  mock.clearRequests();
  sent.length = 0;
});
afterAll(() => mock.stop());

const image = png();
const document = pdf("Oaks lose their leaves.");
const tone = wav();
const note = utf8("Beech, birch & böhmische Linde.\n");

const kinds = {
  image: { bytes: image, mediaType: "image/png", filename: "tree.png" },
  pdf: { bytes: document, mediaType: "application/pdf", filename: "oaks.pdf" },
  audio: { bytes: tone, mediaType: "audio/wav", filename: "tone.wav" },
  text: { bytes: note, mediaType: "text/plain", filename: "notes.txt" },
};
type Kind = keyof typeof kinds;

/** What the request has to have for each kind of file, by provider. */
const wanted: Record<WireName, Record<Kind, object | RegExp>> = {
  "openai responses": {
    image: { type: "input_image", image_url: `data:image/png;base64,${base64(image)}` },
    pdf: { type: "input_file", filename: "oaks.pdf", file_data: `data:application/pdf;base64,${base64(document)}` },
    audio: /\[audio tone\.wav, 844 bytes: not sent \(the model takes no audio\/wav\)\]/,
    text: /Beech, birch & böhmische Linde\./,
  },
  "openai chat": {
    image: { type: "image_url", image_url: { url: `data:image/png;base64,${base64(image)}` } },
    pdf: { type: "file", file: { filename: "oaks.pdf", file_data: `data:application/pdf;base64,${base64(document)}` } },
    audio: { type: "input_audio", input_audio: { data: base64(tone), format: "wav" } },
    text: /Beech, birch & böhmische Linde\./,
  },
  anthropic: {
    image: { type: "image", source: { type: "base64", media_type: "image/png", data: base64(image) } },
    pdf: { type: "document", source: { type: "base64", media_type: "application/pdf", data: base64(document) } },
    audio: /\[audio tone\.wav, 844 bytes: not sent \(the model takes no audio\/wav\)\]/,
    text: {
      type: "document",
      source: { type: "text", media_type: "text/plain", data: new TextDecoder().decode(note) },
    },
  },
  google: {
    image: { inlineData: { mimeType: "image/png", data: base64(image) } },
    pdf: { inlineData: { mimeType: "application/pdf", data: base64(document) } },
    audio: { inlineData: { mimeType: "audio/wav", data: base64(tone) } },
    text: { inlineData: { mimeType: "text/plain", data: base64(note) } },
  },
};

/** Every way to hold bytes that a program has. */
const ways: Record<string, (bytes: Uint8Array, mediaType: string) => unknown> = {
  "a Uint8Array": (bytes) => bytes,
  "a Buffer": (bytes) => Buffer.from(bytes),
  "an ArrayBuffer": (bytes) => bytes.slice().buffer,
  "a Blob": (bytes, mediaType) => new Blob([bytes.slice()], { type: mediaType }),
  "a stream": (bytes) => new Blob([bytes.slice()]).stream(),
  "an async iterable": (bytes) =>
    (async function* () {
      for (let at = 0; at < bytes.length; at += 100) yield bytes.subarray(at, at + 100);
    })(),
  base64: (bytes) => base64(bytes),
  "a data URL": (bytes, mediaType) => `data:${mediaType};base64,${base64(bytes)}`,
  "a data URL object": (bytes, mediaType) => new URL(`data:${mediaType};base64,${base64(bytes)}`),
  "tagged bytes": (bytes) => ({ type: "data", data: bytes }),
  "tagged base64": (bytes) => ({ type: "data", data: base64(bytes) }),
  "a tagged data URL": (bytes, mediaType) => ({ type: "url", url: `data:${mediaType};base64,${base64(bytes)}` }),
};

/** The parts of a request, however deep they are. */
function partsOf(value: unknown): unknown[] {
  if (Array.isArray(value)) return value.flatMap(partsOf);
  if (typeof value !== "object" || value === null) return [];
  return [value, ...Object.values(value).flatMap(partsOf)];
}

function expectSent(request: unknown, form: object | RegExp): void {
  const all = JSON.stringify(request);
  expect(all).not.toContain("bough-content");
  if (form instanceof RegExp) expect(all).toMatch(form);
  else expect(partsOf(request)).toContainEqual(expect.objectContaining(form));
}

/** No fact holds bytes: neither of the files as they are nor in base64. */
async function expectNoBytes(agent: Awaited<ReturnType<typeof given>>["agent"], bytes: Uint8Array): Promise<void> {
  const facts = JSON.stringify(await agent.events(main, { limit: 1000 }));
  expect(facts).toContain("bough-content://sha256/");
  expect(facts).not.toContain(base64(bytes).slice(0, 60));
}

describe.each(wireNames)("%s", (name) => {
  const agentOn = (options: Parameters<typeof given>[1] = {}) =>
    given([], { model: models[name], retry: { attempts: 1 }, ...options });

  describe.each(Object.keys(kinds) as Kind[])("%s", (kind) => {
    const { bytes, mediaType, filename } = kinds[kind];

    test.each(Object.keys(ways))("as %s", async (way) => {
      mock.on({ userMessage: "look" }, { content: "Seen." });
      const { agent } = await agentOn();
      const data = ways[way]!(bytes, mediaType) as never;
      const file = { type: "file", mediaType, filename, data } as const;
      expect(await agent.run([{ type: "text", text: "look" }, file], s).text()).toBe("Seen.");
      expectSent(sent[0], wanted[name][kind]);
      await expectNoBytes(agent, bytes);
    });

    test("as an earlier upload, on later turns too", async () => {
      mock.on({ userMessage: "look" }, { content: "Seen." });
      mock.on({ userMessage: "again" }, { content: "Still there." });
      const { agent } = await agentOn();
      const { uri } = await agent.putContent("s", { bytes, mediaType, name: filename });
      const file = { type: "file", mediaType, filename, data: { type: "url", url: uri } } as const;
      await agent.run([{ type: "text", text: "look" }, file], s).text();
      await agent.run("again", s).text();
      expectSent(sent[0], wanted[name][kind]);
      expectSent(sent[1], wanted[name][kind]);
    });
  });

  test("without a media type, the bytes tell it", async () => {
    mock.on({ userMessage: "look" }, { content: "Seen." });
    const { agent } = await agentOn();
    await agent
      .run(
        [
          { type: "text", text: "look" },
          { type: "file", data: image },
        ],
        s,
      )
      .text();
    expectSent(sent[0], wanted[name].image);
  });

  test("a picture that a tool returns reaches the model", async () => {
    mock.on(
      { userMessage: "shoot", hasToolResult: false },
      { toolCalls: [{ id: "c1", name: "shoot", arguments: "{}" }] },
    );
    mock.on({ hasToolResult: true }, { content: "A tree." });
    mock.on({}, { content: "A tree." });
    const shoot = defineTool({
      description: "Takes a picture.",
      input: z.object({}),
      execute: () => ({
        type: "content",
        value: [
          { type: "text", text: "Here it is." },
          { type: "file", mediaType: "image/png", filename: "shot.png", data: { type: "data", data: image } },
        ],
      }),
      toOutput: (output) => output as never,
    });
    const { agent } = await agentOn({ tools: { shoot } });
    expect(await agent.run("shoot", s).text()).toBe("A tree.");
    expectSent(sent[1], wanted[name].image);
    await expectNoBytes(agent, image);
  });
});
