// What is spoken: transcribers and voices. Models are those of the AI SDK (V3 and V4), written down structurally.

import { BoughError } from "../../base/errors.ts";
import { checkOptions, flag, isObject, object, oneOf, optionTable, text } from "../../base/options.ts";

/** Any AI SDK transcription model object. */
export interface TranscriptionModel {
  readonly provider: string;
  readonly modelId: string;
  // biome-ignore lint/suspicious/noExplicitAny: the versions of the specification differ in details that are not used
  doGenerate(options: any): PromiseLike<{
    readonly text: string;
    readonly language?: string | undefined;
    readonly durationInSeconds?: number | undefined;
  }>;
  // biome-ignore lint/suspicious/noExplicitAny: likewise
  doStream?(options: any): PromiseLike<{ readonly stream: ReadableStream<any> }>;
}

/** What a transcriber of your own is given. */
export interface AudioToTranscribe {
  readonly bytes: Uint8Array;
  readonly mediaType: string;
  readonly filename?: string;
  readonly signal: AbortSignal;
  /** Shows more of the transcript, as the live event `transcript-delta`. */
  delta(text: string): void;
  /** Shows the transcript as far as it is understood now, as `transcript-partial`; each stands in place of the one before. */
  partial(text: string): void;
}

/** What was said in an audio file. */
export interface Transcript {
  readonly text: string;
  readonly language?: string;
  readonly seconds?: number;
}

/** A transcriber of your own. */
export type Transcribe = (audio: AudioToTranscribe) => Promise<string | Transcript>;

/** Any AI SDK speech model object. */
export interface SpeechModel {
  readonly provider: string;
  readonly modelId: string;
  // biome-ignore lint/suspicious/noExplicitAny: likewise
  doGenerate(options: any): PromiseLike<{ readonly audio: Uint8Array | string }>;
}

/** How an agent listens and speaks. */
export interface AudioOptions {
  /** Makes text of the audio files that users send. The model reads the text. */
  readonly transcribe?: TranscriptionModel | Transcribe;
  /** Whether the audio itself stays stored once it is transcribed (default false). */
  readonly keepAudio?: boolean;
  /** When transcription fails: begin the turn with the audio and a note (default), or refuse the input. */
  readonly onFail?: "note" | "refuse";
  /** Speaks every answer, as an artifact. */
  readonly speak?: { readonly model: SpeechModel; readonly voice?: string; readonly format?: string };
}

const isModel = (value: unknown) => isObject(value) && typeof value.doGenerate === "function";

const audioTable = optionTable<AudioOptions>({
  transcribe: {
    fits: (value) => typeof value === "function" || isModel(value),
    wanted: "an AI SDK transcription model or a function",
  },
  keepAudio: flag,
  onFail: oneOf("note", "refuse"),
  speak: object,
});
const speakTable = optionTable<NonNullable<AudioOptions["speak"]>>({
  model: { fits: isModel, wanted: "an AI SDK speech model" },
  voice: text,
  format: text,
});

export function planAudio(options: AudioOptions = {}): AudioOptions {
  checkOptions("The option audio", options, audioTable, "audio.");
  if (options.speak) {
    checkOptions("The option audio.speak", options.speak, speakTable, "audio.speak.");
    if (!options.speak.model) throw new BoughError("invalid_argument", "audio.speak needs a model.");
  }
  return options;
}
