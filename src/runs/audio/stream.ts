// Transcription models that tell what they understand while they listen. They take samples, so only recordings that have them as
// they are (WAV, 16 bits, one channel) can be streamed; all others are transcribed in one piece.

import { unsupportedFeature } from "../../models/accepts.ts";
import type { AudioToTranscribe, Transcript, TranscriptionModel } from "./options.ts";

/** The samples of a WAV file that models take; undefined for any other. */
function readSamples(bytes: Uint8Array): { readonly rate: number; readonly samples: Uint8Array } | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const name = (at: number) => String.fromCharCode(...bytes.subarray(at, at + 4));
  if (bytes.length < 12 || name(0) !== "RIFF" || name(8) !== "WAVE") return undefined;
  let rate: number | undefined;
  for (let at = 12; at + 8 <= bytes.length; ) {
    const size = view.getUint32(at + 4, true);
    const start = at + 8;
    if (name(at) === "fmt " && size >= 16 && start + 16 <= bytes.length) {
      const [form, channels, bits] = [0, 2, 14].map((offset) => view.getUint16(start + offset, true));
      if (form !== 1 || channels !== 1 || bits !== 16) return undefined;
      rate = view.getUint32(start + 4, true);
    }
    if (name(at) === "data") {
      return rate ? { rate, samples: bytes.subarray(start, Math.min(bytes.length, start + size)) } : undefined;
    }
    // Chunks begin at even positions.
    at = start + size + (size & 1);
  }
  return undefined;
}

type Listening = Pick<AudioToTranscribe, "bytes" | "signal" | "delta" | "partial">;

/** The transcript of a model that streams; undefined when this model, or this recording, is none for that. */
export async function streamTranscript(model: TranscriptionModel, audio: Listening): Promise<Transcript | undefined> {
  const found = model.doStream && readSamples(audio.bytes);
  if (!found) return undefined;
  const options = {
    audio: piecesOf(found.samples),
    inputAudioFormat: { type: "audio/pcm", rate: found.rate },
    abortSignal: audio.signal,
  };
  try {
    const { stream } = await model.doStream!(options);
    return await readParts(stream, audio);
  } catch (error) {
    // It says so before it listens.
    if (unsupportedFeature(error) !== undefined) return undefined;
    throw error;
  }
}

async function readParts(
  stream: ReadableStream<{ readonly type: string } & Record<string, unknown>>,
  { delta, partial }: Listening,
): Promise<Transcript> {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) throw new Error("The transcription ended without a result.");
      if (value.type === "transcript-delta") delta(String(value.delta));
      else if (value.type === "transcript-partial") partial(String(value.text));
      else if (value.type === "error") throw value.error;
      else if (value.type === "finish") {
        const { text, language, durationInSeconds } = value;
        return {
          text: String(text),
          ...(typeof language === "string" && { language }),
          ...(typeof durationInSeconds === "number" && { seconds: durationInSeconds }),
        };
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

const pieceBytes = 32 * 1024;

function piecesOf(bytes: Uint8Array): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.slice(at, at + pieceBytes));
      at += pieceBytes;
    },
  });
}
