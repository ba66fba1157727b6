// Packets: what processes send each other over a store's live channel. Every packet is checked; one that does not fit, or
// comes from another version, is dropped.

import * as v from "valibot";
import { utf8Length } from "../base/bytes.ts";
import { type LiveDraft, type LiveEvent, liveEvents, type Routing } from "../events/index.ts";
import { liveTextBytes } from "../log/store.ts";
import type { MessageSnapshot } from "../wire/index.ts";

/** What is sent in order: "the facts up to this number came first", or a live event. */
export type Step = number | StampedDraft;
/** A live event without its address, which the whole packet has in common. */
export type StampedDraft = LiveDraft & { readonly at: number };

/** A request for a branch's live events: from the beginning of the messages in progress, or from now on. */
export interface Want {
  readonly want: "begin" | "on";
}

/** What a run tells. */
export interface News {
  readonly run: string;
  /** Counts the packets of the run; one left out means that something was not sent, or lost. */
  readonly n: number;
  readonly of: Pick<Routing, "agent" | "traceId"> & { readonly turnId?: string | undefined };
  /** Of those that together tell all that is being written: which one, and how many they are. */
  readonly part?: readonly [number, number];
  readonly steps: readonly Step[];
}

const id = v.pipe(v.string(), v.nonEmpty());
const count = v.pipe(v.number(), v.integer(), v.minValue(0));
const agent = v.object({
  id: v.optional(v.string()),
  name: v.optional(v.string()),
  chain: v.array(v.string()),
  depth: count,
});
const news = v.object({
  v: v.literal(1),
  run: id,
  n: count,
  of: v.object({ turnId: v.optional(id), agent: v.optional(agent), traceId: v.optional(id) }),
  part: v.optional(v.tuple([count, count])),
  steps: v.array(v.unknown()),
});
const want = v.object({ v: v.literal(1), want: v.picklist(["begin", "on"]) });
const schemas = new Map<string, v.GenericSchema>(liveEvents.map(({ type, schema }) => [type, schema]));

export function wantText(packet: Want): string {
  return JSON.stringify({ v: 1, ...packet });
}

/** What a text says; nothing for one that says nothing here. */
export function readPacket(text: string): Want | News | undefined {
  const packet = parsed(text);
  const wanted = v.safeParse(want, packet);
  if (wanted.success) return { want: wanted.output.want };
  const told = v.safeParse(news, packet);
  if (!told.success) return undefined;
  const { v: _version, steps, ...rest } = told.output;
  return { ...rest, steps: steps.flatMap((step) => readStep(step) ?? []) } as News;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function readStep(step: unknown): Step | undefined {
  if (v.is(count, step)) return step;
  if (typeof step !== "object" || step === null) return undefined;
  const { type, at, ...draft } = step as Partial<Record<string, unknown>>;
  const schema = schemas.get(String(type));
  if (!schema || !Number.isFinite(at) || !v.is(schema, draft)) return undefined;
  return { ...draft, type, at } as StampedDraft;
}

const addressKeys: ReadonlySet<string> = new Set([
  ...["version", "channel", "direction", "sessionId", "branchId", "runId", "turnId"],
  ...["agent", "traceId", "spanId", "parentSpanId"],
]);

/** A live event without its address. */
export function stampedDraft(event: LiveEvent): StampedDraft {
  return Object.fromEntries(Object.entries(event).filter(([key]) => !addressKeys.has(key))) as StampedDraft;
}

/** Messages as far as they are, told as the deltas that would have made them. */
export function draftsOf(messages: readonly MessageSnapshot[], at: number): StampedDraft[] {
  return messages.flatMap(({ messageId, text, reasoning, toolInputs }) => {
    const drafts: StampedDraft[] = [{ type: "text-delta", messageId, text, at }];
    if (reasoning) drafts.push({ type: "reasoning-delta", messageId, text: reasoning, at });
    for (const { callId, toolName, text } of toolInputs) {
      drafts.push({ type: "tool-input-start", messageId, callId, toolName, at });
      if (text) drafts.push({ type: "tool-input-delta", messageId, callId, text, at });
    }
    return drafts;
  });
}

/** A character takes six bytes at most, as an escape. */
const charactersPerDelta = 1000;

/** The steps as texts, each short enough to be sent. Long deltas are cut; anything else that is too long is left out. */
export function newsTexts(head: Omit<News, "n" | "steps" | "part">, steps: readonly Step[], from: number): string[] {
  return numbered(head, packed(head, steps), from, false);
}

/** The same for steps that tell all that is being written. */
export function wholeTexts(head: Omit<News, "n" | "steps" | "part">, steps: readonly Step[], from: number): string[] {
  return numbered(head, packed(head, steps), from, true);
}

function numbered(head: object, packets: readonly string[][], from: number, isWhole: boolean): string[] {
  return packets.map((steps, i) => {
    const part = isWhole ? { part: [i + 1, packets.length] } : {};
    const start = JSON.stringify({ v: 1, ...head, n: from + i, ...part }).slice(0, -1);
    return `${start},"steps":[${steps.join(",")}]}`;
  });
}

/** Steps in JSON, as many together as a text takes. */
function packed(head: object, steps: readonly Step[]): string[][] {
  const room = liveTextBytes - utf8Length(JSON.stringify(head)) - 100;
  const packets: string[][] = [];
  let left = 0;
  for (const step of steps.flatMap(cut)) {
    const json = jsonOf(step);
    if (json === undefined) continue;
    const bytes = utf8Length(json) + 1;
    if (bytes > room) continue;
    if (bytes > left || packets.length === 0) {
      packets.push([]);
      left = room;
    }
    packets.at(-1)!.push(json);
    left -= bytes;
  }
  return packets;
}

/** Nothing for what a tool shows and no JSON can. */
function jsonOf(step: Step): string | undefined {
  try {
    return JSON.stringify(step);
  } catch {
    return undefined;
  }
}

function cut(step: Step): Step[] {
  if (typeof step === "number" || !("text" in step) || step.text.length <= charactersPerDelta) return [step];
  const pieces: Step[] = [];
  for (let at = 0; at < step.text.length; at += charactersPerDelta) {
    pieces.push({ ...step, text: step.text.slice(at, at + charactersPerDelta) });
  }
  return pieces;
}
