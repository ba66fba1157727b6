// What a model was sent for a reply: made again from the log, and proved by the hash that the reply's fact has.
//   PromptOf-1. Nothing is told as verified that has another hash than what was sent.
//   PromptOf-2. What is told follows from the branch's log alone, so it is the same on every node, in a copy, and on every branch
//       that shares the reply.

import { base64 } from "../../base/bytes.ts";
import { BoughError } from "../../base/errors.ts";
import { checkId } from "../../base/ids.ts";
import type { JsonObject } from "../../base/json.ts";
import type { Fact, PromptRecord } from "../../events/index.ts";
import type { BranchRef } from "../../log/index.ts";
import { renderCall } from "../../models/call-options.ts";
import type { ModelRequest, PromptMessage } from "../../models/index.ts";
import { bareMessage, type RebuiltRequest, rebuildRequest } from "../../models/provenance.ts";
import type { BranchView } from "../../projection/index.ts";
import { unclosedMessages } from "../../projection/overlay.ts";
import { closedTranscript, unclosedTranscript } from "../../projection/transcript.ts";
import type { PromptSource, SentMessage, SentPrompt } from "../../wire/index.ts";
import { resolveBranch } from "../branches.ts";
import type { Context, Scope } from "../context.ts";
import { messageMissing } from "../position.ts";
import { hiddenBy, sourcesOf } from "./sources.ts";

/** Rebuilds what the model was sent for a reply. */
export async function promptOf(context: Context, scope: Scope, messageId: string): Promise<SentPrompt> {
  const { ref, record, rebuilt, request } = await rebuild(context, scope, messageId);
  const { marks, ...sent } = render(request);
  const { missing, withheld } = rebuilt;
  const isVerified = rebuilt.isProved(marks);
  return { ...ref, messageId, upTo: record.upTo, sha: record.sha, isVerified, missing, withheld, ...sent };
}

/** The same without the hints for the provider's cache: they move with every call, and are no part of what is cached. */
export async function unmarkedPromptOf(context: Context, scope: Scope, messageId: string): Promise<UnmarkedPrompt> {
  const { rebuilt, request, view } = await rebuild(context, scope, messageId);
  const { marks } = renderCall(request);
  const { promptCaching: _, ...unmarked } = request;
  return { ...render(unmarked), isVerified: rebuilt.isProved(marks), hiddenBy: (id) => hiddenBy(view, id) };
}

export interface UnmarkedPrompt extends Pick<SentPrompt, "isVerified" | "model" | "messages" | "tools" | "settings"> {
  /** The compaction that hid a message from the model, if one did. */
  hiddenBy(messageId: string): string | undefined;
}

function render(request: ModelRequest) {
  const { options, marks } = renderCall(request);
  const { prompt, tools = [], ...settings } = asJson(options);
  const sources = (options.prompt as readonly Tagged[]).map(sourceOf);
  const messages = (prompt as unknown as PromptMessage[]).map((each, i) => toSent(each, sources[i]!));
  const { provider, modelId } = request.model;
  return { marks, model: { provider, modelId }, messages, tools: tools as JsonObject[], settings };
}

/** Tells where a message comes from, through everything that copies it; no JSON has it. */
const source = Symbol("source");

type Tagged = PromptMessage & { readonly [source]?: PromptSource };

/** Only reminders are added when a request is sent. */
function sourceOf(message: Tagged): PromptSource {
  return message[source] ?? { type: "reminder" };
}

function toSent(message: PromptMessage, from: PromptSource): SentMessage {
  return { ...bareMessage(message), source: from };
}

/** As it would be written: addresses as texts, bytes in base64. */
function asJson(options: Readonly<Record<string, unknown>>): JsonObject {
  return JSON.parse(JSON.stringify(options, (_, value) => (value instanceof Uint8Array ? base64(value) : value)));
}

interface Rebuilt {
  readonly ref: BranchRef;
  readonly record: PromptRecord;
  readonly rebuilt: RebuiltRequest;
  /** Its messages say where they come from. */
  readonly request: ModelRequest;
  readonly view: BranchView;
}

async function rebuild(context: Context, scope: Scope, messageId: string): Promise<Rebuilt> {
  checkId(messageId, "message");
  const ref = await resolveBranch(context, scope);
  const fact = await findReply(context, ref, messageId);
  const { prompt: record } = fact;
  if (!record) throw notKept(ref, messageId);
  const view = await context.views.loadAt(ref, record.upTo);
  const texts = await findTexts(context, ref, view, record);
  const rebuilt = rebuildRequest({
    ...{ record, texts },
    history: closedTranscript(view),
    turn: unclosedTranscript(view),
  });
  const sources = sourcesOf(view, rebuilt);
  const prompt = rebuilt.request.prompt.map((message, i) => ({ ...message, [source]: sources[i]! }));
  return { ref, record, rebuilt, request: { ...rebuilt.request, prompt }, view };
}

function notKept(ref: BranchRef, messageId: string): BoughError {
  const sentence = `Message "${messageId}" has no record of a prompt: no model call made it, or an earlier version did.`;
  return new BoughError("prompt_not_kept", sentence, { data: { ...ref, messageId } });
}

/** The fact of a message that the branch has, whether people still see it or not. */
async function findReply(context: Context, ref: BranchRef, messageId: string): Promise<Fact<"message.added">> {
  const { view } = await context.views.load(ref);
  const extent = extentOf(context, ref, view, messageId);
  if (!extent) throw await messageMissing(context, ref, view, messageId);
  const { from, to } = extent;
  const { facts } = await context.journal.read(ref, { after: from - 1, before: to + 1, limit: to - from + 1 });
  const fact = facts.find(({ id }) => id === messageId);
  // Results of tools have no fact under the id of their message.
  if (fact?.type !== "message.added") throw notKept(ref, messageId);
  return fact as Fact<"message.added">;
}

/** Where the facts of a message's turn are. */
function extentOf(
  { views }: Context,
  ref: BranchRef,
  view: BranchView,
  messageId: string,
): { from: number; to: number } | undefined {
  const { ledger, turns } = views.indexOf(ref, view);
  const at = ledger.get(messageId);
  if (at !== undefined) return turns.get(view.messages[at]!.turnId);
  const message = unclosedMessages(view).find(({ id }) => id === messageId);
  const turn = [...view.staged, ...(view.open ? [view.open] : [])].find(({ id }) => id === message?.turnId);
  return turn && { from: turn.from, to: view.seq };
}

/** The texts that a record names: its own, and those that the branch had when it was made. */
async function findTexts(
  { journal }: Context,
  ref: BranchRef,
  view: BranchView,
  record: PromptRecord,
): Promise<ReadonlyMap<string, string>> {
  const texts = new Map(Object.entries(record.texts ?? {}));
  const { system, tools, settings, edits, reminders } = record;
  for (const sha of [system, tools, settings, edits, reminders]) {
    const seq = sha !== undefined && !texts.has(sha) && view.texts.find((text) => text.sha === sha)?.seq;
    if (!seq) continue;
    const [fact] = (await journal.read(ref, { after: seq - 1, limit: 1 })).facts;
    const text = fact?.type === "message.added" ? fact.prompt?.texts?.[sha] : undefined;
    if (text !== undefined) texts.set(sha, text);
  }
  return texts;
}
