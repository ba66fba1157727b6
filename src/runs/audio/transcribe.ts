// Audio that users send, as text: a transcript stands in the message where the audio was, beside what was typed.
//   Transcribe-1. The same audio is transcribed once by a model, also after a crash: the transcript is stored with its content
//       before the turn begins.
//   Transcribe-2. Text is what the log keeps. The audio goes once the turn is durable, unless it is to be kept.

import { BoughError } from "../../base/errors.ts";
import type { JsonObject } from "../../base/json.ts";
import { contentIdOf, type FilePart, isFilePart } from "../../events/files.ts";
import type { NewMessage, Part } from "../../events/index.ts";
import type { BranchRef } from "../../log/store.ts";
import { deleteContent, findContent, putContent, readContent, updateContent } from "../../sessions/content.ts";
import type { Context } from "../../sessions/context.ts";
import type { Emitter } from "../emit.ts";
import { type Redacting, tellError } from "../redact-errors.ts";
import type { AudioOptions, Transcript } from "./options.ts";
import { streamTranscript } from "./stream.ts";

interface Listening extends Redacting {
  readonly context: Context;
  readonly ref: BranchRef;
  readonly emitter: Emitter;
  readonly signal: AbortSignal;
  readonly audio: AudioOptions;
}

export interface Heard {
  readonly messages: readonly NewMessage[];
  /** Content that is no longer needed once the turn is durable. */
  readonly spent: readonly string[];
}

/** The messages with transcripts in the places of the users' audio files. */
export async function transcribeAudio(listening: Listening, messages: readonly NewMessage[]): Promise<Heard> {
  const { audio } = listening;
  if (!audio.transcribe || !messages.some(hasAudio)) return { messages, spent: [] };
  const spent: string[] = [];
  const heard: NewMessage[] = [];
  for (const message of messages) {
    if (!hasAudio(message)) {
      heard.push(message);
      continue;
    }
    const content: Part[] = [];
    for (const part of message.content as readonly Part[]) {
      if (isAudio(part)) content.push(...(await hear(listening, part as unknown as FilePart, spent)));
      else content.push(part);
    }
    heard.push({ ...message, content });
  }
  return { messages: heard, spent: audio.keepAudio ? [] : spent };
}

/** Transcribe-2. What can't be removed now stays as any other content does. */
export async function forgetAudio(context: Context, ref: BranchRef, spent: readonly string[]): Promise<void> {
  for (const id of spent) await deleteContent(context, ref, id).catch(() => false);
}

function hasAudio({ role, content }: NewMessage): boolean {
  return role === "user" && typeof content !== "string" && content.some(isAudio);
}

function isAudio(part: Part): boolean {
  const file = part as unknown as FilePart;
  return isFilePart(part) && /^audio\//.test(file.mediaType) && contentIdOf(file) !== undefined;
}

async function hear(listening: Listening, file: FilePart, spent: string[]): Promise<Part[]> {
  const id = contentIdOf(file)!;
  try {
    const { derivedId, ...transcript } = await transcriptOf(listening, file, id);
    spent.push(id, derivedId);
    const about = { of: id, model: nameOf(listening.audio), ...details(transcript) };
    return [{ type: "text", text: transcript.text, providerOptions: { bough: { transcript: about } } }];
  } catch (error) {
    if (listening.signal.aborted) throw listening.signal.reason;
    if (listening.audio.onFail === "refuse") {
      const { message } = tellError(listening, error);
      throw new BoughError("model_failed", `The audio could not be transcribed: ${message}`, { cause: error });
    }
    listening.emitter.live({ type: "content-fail", contentId: id, error: tellError(listening, error) });
    return [file as unknown as Part, { type: "text", text: "[The audio could not be transcribed.]" }];
  }
}

/** Transcribe-1. */
async function transcriptOf(
  listening: Listening,
  file: FilePart,
  id: string,
): Promise<Transcript & { derivedId: string }> {
  const { context, ref } = listening;
  const key = `transcript:${nameOf(listening.audio)}`;
  const known = (await findContent(context, ref, id)).texts?.[key];
  if (known !== undefined) {
    const stored = JSON.parse(new TextDecoder().decode(await readContent(context, ref, known))) as Transcript;
    return { ...stored, derivedId: known };
  }
  const made = await transcribe(listening, file, id);
  const bytes = new TextEncoder().encode(JSON.stringify(made));
  const derived = await putContent(context, ref, { bytes, mediaType: "application/json", origin: "derived", of: id });
  await updateContent(context, ref, id, { texts: { [key]: derived.id } });
  return { ...made, derivedId: derived.id };
}

async function transcribe(listening: Listening, file: FilePart, contentId: string): Promise<Transcript> {
  const { context, ref, emitter, signal, audio } = listening;
  const bytes = await readContent(context, ref, contentId);
  const { mediaType, filename } = file;
  const delta = (text: string) => emitter.live({ type: "transcript-delta", contentId, text });
  const partial = (text: string) => emitter.live({ type: "transcript-partial", contentId, text });
  if (typeof audio.transcribe === "function") {
    const about = { mediaType, ...(filename !== undefined && { filename }) };
    const made = await audio.transcribe({ bytes, signal, delta, partial, ...about });
    return typeof made === "string" ? { text: made } : { text: String(made.text), ...details(made) };
  }
  const streamed = await streamTranscript(audio.transcribe!, { bytes, signal, delta, partial });
  if (streamed) return streamed;
  const result = await audio.transcribe!.doGenerate({ audio: bytes, mediaType, abortSignal: signal });
  const { language, durationInSeconds: seconds } = result;
  return { text: result.text, ...(language !== undefined && { language }), ...(seconds !== undefined && { seconds }) };
}

function details({ language, seconds }: Omit<Transcript, "text">): JsonObject & Omit<Transcript, "text"> {
  return { ...(language !== undefined && { language }), ...(seconds !== undefined && { seconds }) };
}

function nameOf({ transcribe }: AudioOptions): string {
  if (typeof transcribe !== "object") return "function";
  return `${transcribe.provider}/${transcribe.modelId}`;
}
