// Audio: what users say is text in their message, and answers can be spoken.

import { createOpenAI } from "@ai-sdk/openai";
import { describe, expect, test } from "vitest";
import { type Message, textOf } from "../../src/events/index.ts";
import type { Transcribe } from "../../src/index.ts";
import { eventsOf, given, main, ofType, refused, s } from "../agent/kit.ts";
import { utf8, wav } from "./files.ts";

const tone = wav(0.1);
const recording = { type: "file", mediaType: "audio/wav", filename: "note.wav", data: tone } as const;
const typed = { type: "text", text: "Listen:" } as const;

/** A transcriber that counts. */
function hearing(text = "Buy milk.") {
  const calls: Uint8Array[] = [];
  const transcribe: Transcribe = async ({ bytes, delta, partial }) => {
    calls.push(bytes);
    delta("Buy ");
    partial("Buy silk");
    return { text, language: "en", seconds: 0.1 };
  };
  return { calls, transcribe };
}

describe("a recording", () => {
  test("is text behind what was typed; the audio is not kept", async () => {
    const { calls, transcribe } = hearing();
    const { agent, model } = await given(["Noted."], { audio: { transcribe } });
    const events = await eventsOf(agent.run([typed, recording], s));
    expect(Buffer.from(calls[0]!).equals(tone)).toBe(true);
    expect(ofType(events, "transcript-delta").map(({ text }) => text)).toEqual(["Buy "]);
    expect(ofType(events, "transcript-partial").map(({ text }) => text)).toEqual(["Buy silk"]);
    const { messages } = await agent.loadBranch("s");
    const transcript = { of: expect.stringMatching(/^[0-9a-f]{64}$/), model: "function", language: "en", seconds: 0.1 };
    expect(messages[0]!.content).toEqual([
      typed,
      { type: "text", text: "Buy milk.", providerOptions: { bough: { transcript } } },
    ]);
    expect(textOf(model.calls[0]!.prompt[0] as Message)).toBe("Listen:Buy milk.");
    expect(await agent.listContent("s")).toEqual([]);
  });

  test("stays stored with keepAudio, and is transcribed once", async () => {
    const { calls, transcribe } = hearing();
    const { agent } = await given(["One.", "Two."], { audio: { transcribe, keepAudio: true } });
    await agent.run([recording], s).text();
    await agent.run([recording], s).text();
    expect(calls).toHaveLength(1);
    const [audio] = (await agent.listContent("s")).filter(({ mediaType }) => mediaType === "audio/wav");
    expect(await (await agent.getContent(main, audio!.id)).bytes()).toEqual(tone);
  });

  test("is not transcribed again after a crash between the transcript and the turn", async () => {
    const { calls, transcribe } = hearing();
    const { agent, store, again } = await given(["One."], { audio: { transcribe } });
    const append = store.append.bind(store);
    Object.assign(store, { append: () => Promise.reject(new Error("the power is out")) });
    await agent.run([recording], s).result.catch(() => {});
    Object.assign(store, { append });
    expect((await agent.loadBranch("s")).messages).toEqual([]);
    await again().run([recording], s).text();
    expect(calls).toHaveLength(1);
    expect(textOf((await again().loadBranch("s")).messages[0]!)).toBe("Buy milk.");
  });

  test("that can't be transcribed begins the turn with the audio and a note", async () => {
    const { agent } = await given(["Hm."], { audio: { transcribe: () => Promise.reject(new Error("noise")) } });
    const events = await eventsOf(agent.run([recording], s));
    expect(ofType(events, "content-fail")).toMatchObject([{ error: { message: "noise" } }]);
    const { messages } = await agent.loadBranch("s");
    expect(messages[0]!.content).toMatchObject([{ type: "file" }, { text: "[The audio could not be transcribed.]" }]);
  });

  test("or is refused, and no turn begins", async () => {
    const transcribe = () => Promise.reject(new Error("noise"));
    const { agent } = await given(["Hm."], { audio: { transcribe, onFail: "refuse" } });
    await refused(agent.run([recording], s).result, "model_failed");
    expect((await agent.loadBranch("s")).uncommittedTurn).toBeUndefined();
  });

  test("reaches a transcription model of the AI SDK", async () => {
    const bodies: string[] = [];
    const openai = createOpenAI({
      apiKey: "none",
      fetch: async (_, init) => {
        const form = init!.body as FormData;
        const file = form.get("file") as Blob;
        bodies.push(`${form.get("model")} ${file.type} ${file.size}`);
        return Response.json({ text: "Water the oak.", language: "english", duration: 0.1 });
      },
    });
    const { agent } = await given(["Done."], { audio: { transcribe: openai.transcription("whisper-1") } });
    await agent.run([recording], s).text();
    expect(bodies).toEqual([`whisper-1 audio/wav ${tone.length}`]);
    expect(textOf((await agent.loadBranch("s")).messages[0]!)).toBe("Water the oak.");
  });

  test("without a transcriber is sent to the model as it is", async () => {
    const { agent, model } = await given(["A tone."]);
    await agent.run([recording], s).text();
    expect(model.calls[0]!.prompt[0]!.content).toMatchObject([{ type: "file", data: { type: "data" } }]);
  });
});

describe("an answer", () => {
  const speech = { provider: "voices", modelId: "v1", doGenerate: async () => ({ audio: wav(0.5) }) };

  test("is spoken after its text is durable, as an artifact of its message", async () => {
    const asked: object[] = [];
    const model = { ...speech, doGenerate: async (options: object) => (asked.push(options), { audio: wav(0.5) }) };
    const { agent } = await given(["Good morning."], { audio: { speak: { model, voice: "alloy", format: "wav" } } });
    const run = agent.run("Hello.", s);
    const events = await eventsOf(run);
    expect(asked).toMatchObject([{ text: "Good morning.", voice: "alloy", outputFormat: "wav" }]);
    const [attached] = ofType(events, "content.attached");
    const { messages } = await run.result;
    expect(attached).toMatchObject({
      ...{ kind: "speech", messageId: messages.at(-1)!.id, mediaType: "audio/wav" },
      meta: { voice: "alloy", model: "voices/v1", seconds: 0.5 },
    });
    const types = events.map(({ type }) => type);
    expect(types.indexOf("turn.committed")).toBeLessThan(types.indexOf("content.attached"));
    expect(types.at(-1)).toBe("run-end");
    expect(await (await agent.getContent(main, attached!.contentId)).bytes()).toEqual(wav(0.5));
    expect((await agent.loadBranch("s")).messages).toHaveLength(2);
  });

  test("that can't be spoken is an answer all the same", async () => {
    const model = { ...speech, doGenerate: async () => ({ audio: utf8("") }) };
    const { agent } = await given(["Good morning."], { audio: { speak: { model } } });
    const run = agent.run("Hello.", s);
    const events = await eventsOf(run);
    expect(ofType(events, "content-fail")).toHaveLength(1);
    expect(await run.result).toMatchObject({ status: "completed", text: "Good morning." });
  });
});
