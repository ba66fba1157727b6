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

  describe("and a model that streams", () => {
    const openai = createOpenAI({ apiKey: "none", fetch: async () => Response.json({ text: "Whole." }) });
    const streaming = (parts: object[], heard: { rate?: number; samples: number }) => ({
      ...{ provider: "ears", modelId: "e1", doGenerate: async () => ({ text: "Whole." }) },
      async doStream({
        audio,
        inputAudioFormat,
      }: {
        audio: ReadableStream<Uint8Array>;
        inputAudioFormat: { rate: number };
      }) {
        heard.rate = inputAudioFormat.rate;
        for await (const piece of audio as unknown as AsyncIterable<Uint8Array>) heard.samples += piece.length;
        const left = [...parts];
        const stream = new ReadableStream({
          pull: (to) => (left.length > 0 ? to.enqueue(left.shift()) : to.close()),
        });
        return { stream };
      },
    });
    const finish = { type: "finish", text: "Buy milk.", segments: [], language: "en", durationInSeconds: 0.1 };

    test("what it understands is shown while it listens", async () => {
      const heard = { samples: 0 };
      const parts = [
        { type: "stream-start" },
        { type: "transcript-delta", delta: "Buy" },
        { type: "transcript-partial", text: "Buy silk" },
        finish,
      ];
      const { agent } = await given(["Noted."], { audio: { transcribe: streaming(parts, heard) } });
      const events = await eventsOf(agent.run([recording], s));
      expect(heard).toEqual({ rate: 8000, samples: tone.length - 44 });
      expect(ofType(events, "transcript-delta").map(({ text }) => text)).toEqual(["Buy"]);
      expect(ofType(events, "transcript-partial").map(({ text }) => text)).toEqual(["Buy silk"]);
      const { messages } = await agent.loadBranch("s");
      expect(messages[0]!.content).toMatchObject([
        {
          text: "Buy milk.",
          providerOptions: { bough: { transcript: { language: "en", seconds: 0.1, model: "ears/e1" } } },
        },
      ]);
    });

    test.each([
      ["breaks off", [{ type: "transcript-delta", delta: "Buy" }]],
      ["fails", [{ type: "error", error: new Error("noise") }, finish]],
    ])("one that %s has failed", async (_, parts) => {
      const { agent } = await given(["Hm."], {
        audio: { transcribe: streaming(parts, { samples: 0 }), onFail: "refuse" },
      });
      await refused(agent.run([recording], s).result, "model_failed");
    });

    test("one that can't, and a recording that has no plain samples, are transcribed in one piece", async () => {
      const stereo = new Uint8Array(tone);
      stereo[22] = 2;
      const heard = { samples: 0 };
      const first = await given(["One."], { audio: { transcribe: streaming([finish], heard) } });
      await first.agent.run([{ ...recording, data: stereo }], s).text();
      expect(heard.samples).toBe(0);
      const second = await given(["One."], { audio: { transcribe: openai.transcription("whisper-1") } });
      await second.agent.run([recording], s).text();
      for (const { agent } of [first, second])
        expect(textOf((await agent.loadBranch("s")).messages[0]!)).toBe("Whole.");
    });
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

  test("is spoken once: a process that died while it spoke is not made up for", async () => {
    const texts: string[] = [];
    const stop = new AbortController();
    const model = {
      ...speech,
      doGenerate: ({ text }: { text: string }) => {
        texts.push(text);
        if (texts.length > 1) return Promise.resolve({ audio: wav(0.5) });
        stop.abort();
        return new Promise<never>(() => {});
      },
    };
    const { again, agent } = await given(["Good morning.", "Good night."], { audio: { speak: { model } } });
    const first = again();
    void first.run("Hello.", s).result.catch(() => {});
    await new Promise<void>((resolve) => stop.signal.addEventListener("abort", () => resolve()));
    await first.close();
    await again({ script: ["Good night."] })
      .run("Bye.", s)
      .text();
    expect(texts).toEqual(["Good morning.", "Good night."]);
    expect(await agent.events(main, { type: "content.attached" })).toHaveLength(1);
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
