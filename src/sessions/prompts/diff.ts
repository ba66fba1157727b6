// Who broke the cache: where a prompt stops being the beginning of another, and what made the part that differs.

import { utf8Length } from "../../base/bytes.ts";
import { isSameJson, type Json, type JsonObject } from "../../base/json.ts";
import type { DifferingPart, PromptChange, PromptDiff, PromptSource } from "../../wire/index.ts";
import type { Context, Scope } from "../context.ts";
import { type UnmarkedPrompt, unmarkedPromptOf } from "./prompt-of.ts";

/** Which prompts are compared. */
export interface DiffOptions {
  /** The branch of the later reply (default: the same). */
  readonly toScope?: Scope;
}

/** Compares the prompts of two replies, the earlier one first. */
export async function diffPrompts(
  context: Context,
  scope: Scope,
  from: string,
  to: string,
  { toScope = scope }: DiffOptions = {},
): Promise<PromptDiff> {
  return comparePrompts(await unmarkedPromptOf(context, scope, from), await unmarkedPromptOf(context, toScope, to));
}

interface Part {
  readonly source: DifferingPart["source"];
  readonly text: string;
}

function comparePrompts(from: UnmarkedPrompt, to: UnmarkedPrompt): PromptDiff {
  const [earlier, later] = [partsOf(from), partsOf(to)];
  const least = Math.min(earlier.length, later.length);
  let at = 0;
  while (at < least && earlier[at]!.text === later[at]!.text) at++;
  const same = earlier.slice(0, at).reduce((sum, { text }) => sum + utf8Length(text), 0);
  const [a, b] = [earlier[at], later[at]];
  const cut = commonLength(a?.text ?? "", b?.text ?? "");
  const shared = same + utf8Length((a?.text ?? "").slice(0, cut));
  const bytes = { shared, from: sizeOf(earlier), to: sizeOf(later) };
  const first =
    (a ?? b)
      ? { ...changeOf([a?.source, b?.source], [from, to]), ...sideOf("from", a, cut), ...sideOf("to", b, cut) }
      : undefined;
  return {
    isPrefix: earlier.slice(at).every(({ source }) => source.type === "reminder"),
    ...(first && { first }),
    bytes,
    share: bytes.from === 0 ? 1 : shared / bytes.from,
    settings: differingSettings(from, to),
    isVerified: from.isVerified && to.isVerified,
  };
}

/** In the order in which providers cache. */
function partsOf({ tools, messages }: UnmarkedPrompt): Part[] {
  return [
    ...tools.map((tool) => ({
      source: { type: "tool", name: String(tool.name) } as const,
      text: JSON.stringify(tool),
    })),
    ...messages.map(({ source, ...message }) => ({ source, text: JSON.stringify(message) })),
  ];
}

function sizeOf(parts: readonly Part[]): number {
  return parts.reduce((sum, { text }) => sum + utf8Length(text), 0);
}

/** A pair of surrogates is not split. */
function commonLength(a: string, b: string): number {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length++;
  return /[\ud800-\udbff]/.test(a[length - 1] ?? "") ? length - 1 : length;
}

/** How much is shown before and after the place. */
const [before, after] = [20, 80];

function sideOf(name: "from" | "to", part: Part | undefined, cut: number) {
  if (!part) return {};
  const { source, text } = part;
  return { [name]: { source, excerpt: text.slice(Math.max(0, cut - before), cut + after) } };
}

/** What made the difference, and the compaction, if it was one that began or ended to hide messages. */
function changeOf(
  [from, to]: readonly [Source, Source],
  [earlier, later]: readonly [UnmarkedPrompt, UnmarkedPrompt],
): { change: PromptChange; compactionId?: string } {
  const has = (type: string) => from?.type === type || to?.type === type;
  if (has("tool")) return { change: "tools" };
  if (has("instructions")) return { change: "instructions" };
  if (has("hook")) return { change: "hook" };
  const compactionId =
    compactionOf(to, from) ?? compactionOf(from, to) ?? hider(later, from) ?? hider(earlier, to) ?? keeperOf(from, to);
  if (compactionId !== undefined) return { change: "compaction", compactionId };
  if (idOf(from) === idOf(to) && !isSameJson(clearingsOf(from), clearingsOf(to))) return { change: "clearing" };
  if (has("reminder")) return { change: "reminder" };
  // The same message says less: models get the reasoning of earlier turns only if they are asked to.
  const isSameMessage = idOf(from) !== undefined && idOf(from) === idOf(to);
  return { change: isSameMessage ? "reasoning" : "messages" };
}

type Source = DifferingPart["source"] | undefined;

function compactionOf(source: Source, other: Source): string | undefined {
  return source?.type === "compaction" && other !== undefined ? source.compactionId : undefined;
}

/** A compaction may show nothing in the place of what it hides. */
function hider({ hiddenBy }: UnmarkedPrompt, source: Source): string | undefined {
  const id = idOf(source);
  return id === undefined ? undefined : hiddenBy(id);
}

function keeperOf(from: Source, to: Source): string | undefined {
  const [before, after] = [asMessage(from)?.keptBy, asMessage(to)?.keptBy];
  return from && to && before !== after ? (after ?? before) : undefined;
}

function asMessage(source: Source): Extract<PromptSource, { type: "message" }> | undefined {
  return source?.type === "message" ? source : undefined;
}

function idOf(source: Source): string | undefined {
  return asMessage(source)?.messageId;
}

function clearingsOf(source: Source): Json {
  return [...(asMessage(source)?.clearedBy ?? [])];
}

function differingSettings(from: UnmarkedPrompt, to: UnmarkedPrompt): string[] {
  const [a, b] = [from, to].map(({ model, settings }) => ({ model, ...settings }) as JsonObject);
  const names = new Set([...Object.keys(a!), ...Object.keys(b!)]);
  return [...names].filter((name) => !isSameJson(a![name] ?? null, b![name] ?? null));
}
