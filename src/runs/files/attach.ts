// Files that come into being in a turn: attached by a tool, made by a model, or too long for a result.

import type { JsonObject } from "../../base/json.ts";
import { refineType } from "../../base/media-type.ts";
import { contentAttached } from "../../events/drafts.ts";
import { contentIdIn, contentIdOf, type FilePart, filesOf } from "../../events/files.ts";
import type { Draft, Message, ToolOutput } from "../../events/index.ts";
import { findContent, getContent } from "../../sessions/content.ts";
import { storeParts } from "../../sessions/files.ts";
import { readTextPiece } from "../../sessions/texts.ts";
import type { Artifact, ContentReader, NewArtifact, Tool } from "../../tools/index.ts";
import type { ActiveTurn } from "../turn/active-turn.ts";

/** What a file is attached to. */
interface Attachment {
  readonly callId?: string;
  readonly messageId?: string;
  readonly kind: "artifact" | "speech";
  readonly meta?: JsonObject | undefined;
}

/** Stores the bytes of a file and writes that it is attached. */
export async function attachFile(turn: ActiveTurn, file: NewArtifact, to: Attachment): Promise<Artifact> {
  const { name, bytes, mediaType } = file;
  const given = { type: "file", data: bytes, filename: name, ...(mediaType !== undefined && { mediaType }) } as const;
  const [part] = (await storeParts(turn.fileDoor("tool"), [given])) as unknown as [FilePart];
  const draft = await draftAttached(turn, part, { ...to, meta: file.meta });
  await turn.write(draft);
  const { contentId: id, mediaType: type, size } = draft;
  return { id, name, mediaType: type, size, part };
}

async function draftAttached(
  { context, held, turnId }: ActiveTurn,
  part: FilePart,
  { meta, ...to }: Attachment,
): Promise<Draft<"content.attached">> {
  const contentId = contentIdOf(part)!;
  const { size } = await findContent(context, held.ref, contentId);
  const { filename: name, mediaType } = part;
  const about = { contentId, mediaType, size, ...(name !== undefined && { name }), ...(meta && { meta }) };
  return contentAttached(context, { turnId, ...to, ...about });
}

/** Writes that the files of a reply are attached to it: a model made them. */
export async function attachReply(turn: ActiveTurn, message: Pick<Message, "content"> & { id: string }): Promise<void> {
  const made = filesOf(message).filter((file) => file.type === "file" && contentIdOf(file) !== undefined);
  if (made.length === 0) return;
  const to = { messageId: message.id, kind: "artifact" } as const;
  await turn.write(...(await Promise.all(made.map((part) => draftAttached(turn, part, to)))));
}

/** Reads what the branch sees, for a tool. */
export function contentReader({ context, held: { ref } }: ActiveTurn): ContentReader {
  const idOf = (given: string) => contentIdIn(given) ?? given;
  return {
    async get(given) {
      const stored = await getContent(context, ref, idOf(given));
      const { mediaType, name } = stored.content;
      return { bytes: await stored.bytes(), mediaType, ...(name !== undefined && { name }) };
    },
    async text(given, piece) {
      const { id, mediaType, name } = await findContent(context, ref, idOf(given));
      return readTextPiece(context, ref, { id, mediaType: refineType(mediaType, name) }, piece);
    },
  };
}

/** The longest output that a tool with `overflow` leaves in the result, in characters, and what stays of a longer one. */
const longest = 64 * 1024;
const head = 8 * 1024;
const tail = 4 * 1024;

/** A long output of a tool that wants that, as a file with its beginning and end left in the result. */
export async function shortenOutput(
  turn: ActiveTurn,
  output: ToolOutput,
  { tool, callId }: { tool: Tool | undefined; callId: string },
): Promise<ToolOutput> {
  if (tool?.overflow !== "artifact" || (output.type !== "text" && output.type !== "json")) return output;
  const isText = output.type === "text";
  const text = isText ? String(output.value) : JSON.stringify(output.value);
  if (text.length <= longest) return output;
  const file = {
    name: `${tool.name}-${callId}.${isText ? "txt" : "json"}`,
    bytes: new TextEncoder().encode(text),
    mediaType: isText ? "text/plain" : "application/json",
  };
  const { id } = await attachFile(turn, file, { callId, kind: "artifact" });
  const left = text.length - head - tail;
  const note = `[… ${left} characters are left out here. The whole output is stored; read_file({ id: "${id}" }) reads it …]`;
  return { type: "text", value: `${text.slice(0, head)}\n${note}\n${text.slice(-tail)}` };
}
