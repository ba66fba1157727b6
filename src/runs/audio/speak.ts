// Answers as speech: an artifact of the message, made after its text is durable. Text stays primary: a failure changes nothing.

import { untilAborted } from "../../base/abort.ts";
import { fromBase64 } from "../../base/bytes.ts";
import { mediaTypeByName } from "../../base/media-type.ts";
import { contentAttached } from "../../events/drafts.ts";
import { textOf } from "../../events/index.ts";
import { putContent } from "../../sessions/content.ts";
import { tellError } from "../redact-errors.ts";
import type { ActiveTurn } from "../turn/active-turn.ts";
import type { RunResult } from "../turn/close.ts";

/** Speaks the answer of a completed turn, if that is wanted. Never rejects. */
export async function speakAnswer(turn: ActiveTurn, result: RunResult): Promise<void> {
  const { speak } = turn.plan.audio;
  const message = result.messages.findLast(({ role }) => role === "assistant");
  if (!speak || result.status !== "completed" || !message || textOf(message) === "") return;
  const { context, held, emitter } = turn;
  try {
    const { model, voice, format = "mp3" } = speak;
    const text = textOf(message);
    // Whoever ends the run, or closes the agent, doesn't wait for a voice.
    const abortSignal = AbortSignal.any([turn.signal, turn.plan.tasks.signal]);
    const spoken = model.doGenerate({ text, voice, outputFormat: format, abortSignal });
    const { audio } = await untilAborted(abortSignal, spoken);
    const bytes = typeof audio === "string" ? fromBase64(audio) : audio;
    if (!bytes || bytes.length === 0) throw new Error("The speech model returned no audio.");
    const [name, mediaType] = [`${message.id}.${format}`, mediaTypeByName(`a.${format}`) ?? `audio/${format}`];
    const { id, size } = await putContent(context, held.ref, { bytes, mediaType, name, origin: "model" });
    const meta = {
      model: `${model.provider}/${model.modelId}`,
      ...(voice !== undefined && { voice }),
      ...secondsOf(bytes, mediaType),
    };
    const about = { messageId: message.id, contentId: id, name, mediaType, size, kind: "speech", meta } as const;
    const { facts } = await context.journal.append(held.ref, [contentAttached(context, about)]);
    emitter.kept(facts);
  } catch (error) {
    emitter.live({ type: "content-fail", error: tellError(turn.plan, error) });
  }
}

/** How long a WAV file plays, by its header. Other formats don't tell so easily. */
function secondsOf(bytes: Uint8Array, mediaType: string): { seconds?: number } {
  if (mediaType !== "audio/wav" || bytes.length < 44) return {};
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const rate = view.getUint32(28, true);
  return rate > 0 ? { seconds: Math.round(((bytes.length - 44) / rate) * 1000) / 1000 } : {};
}
