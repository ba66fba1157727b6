// Between facts in memory and the text a store keeps. The door: what encode() accepts can always be read, folded and
// written again. Durable text has the type, the time and the payload; routing (session, branch, channel, direction,
// trace, agent) belongs to the live envelope and is left out.

import * as v from "valibot";
import { BoughError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import { factLimits, type JsonObject, ownJson, writeJson } from "../base/json.ts";
import type { EventDefinition, KeptDefinition } from "./define.ts";
import type { InteractionForm } from "./interactions.ts";
import { keptEvents } from "./kept.ts";

type Definitions = (typeof keptEvents)[number];
type PayloadOf<D> = D extends EventDefinition<string, boolean, infer S> ? v.InferOutput<S> : never;

/** The types of facts. */
export type FactType = Definitions["type"];
/** The payload of one type of fact. */
export type FactPayload<Type extends FactType> = PayloadOf<Extract<Definitions, { type: Type }>>;

interface Stamp {
  readonly seq: number;
  readonly id: string;
  /** When it happened, in milliseconds since the epoch. */
  readonly at: number;
}

/** What a reader sees of a payload: a question's request is typed by its kind. */
type ReadPayload<Type extends FactType> = Type extends "interaction.opened"
  ? Omit<FactPayload<Type>, "kind" | "request"> & InteractionForm
  : FactPayload<Type>;

/** A fact as it was appended: its place, its id, its time, and the payload of its type. */
export type Fact<Type extends FactType = FactType> = {
  [T in Type]: Stamp & { readonly type: T } & Readonly<ReadPayload<T>>;
}[Type];

/** A fact of a kind that this version does not know; kept and passed on as it is. */
export interface UnknownFact extends Stamp {
  readonly type: `unknown:${string}`;
  readonly payload: JsonObject;
}

/** A fact before it has a number: what a writer hands over. */
export type Draft<Type extends FactType = FactType> = {
  [T in Type]: { readonly type: T; readonly id: string; readonly at: number } & Readonly<FactPayload<T>>;
}[Type];

/** A fact of a kind that this version does not know, before it has a number. */
export type UnknownDraft = Omit<UnknownFact, "seq">;

/** A fact before it has a number, of a built-in type or of one that the program defined. */
export type AnyDraft = Draft | UnknownDraft;

/** What every draft has. */
interface DraftStamp {
  readonly type: string;
  readonly id: string;
  readonly at: number;
}

export interface StoredText {
  readonly id: string;
  readonly data: string;
}

/** A fact before it has a number, as it will be stored and as it will be read. */
export interface Encoded extends StoredText {
  readonly fact: Unnumbered<Fact | UnknownFact>;
}

type Unnumbered<F> = F extends unknown ? Omit<F, "seq"> : never;

/** Turns facts into the text that a store keeps, and back. */
export interface Codec<Drafts extends DraftStamp = Draft, Facts = Fact> {
  /** What to store; refuses payloads of the wrong shape, too large, too deep, or that would not come back the same. */
  encode(draft: Drafts | UnknownDraft): Encoded;
  /** The fact behind stored text; older versions are brought up to date, unknown kinds are kept as they are. */
  decode(stored: StoredText & { readonly seq: number }): Facts | UnknownFact;
}

const unknownPrefix = "unknown:";
/** What a draft has besides its payload; checked apart. */
const stamp = { id: v.any(), type: v.any(), at: v.any() };
/** The fact itself is the outermost object. */
const fieldLimits = { ...factLimits, depth: factLimits.depth - 1 };

/** Makes a codec of these facts. */
export function createCodec<Drafts extends DraftStamp = Draft, Facts = Fact>(
  events: readonly KeptDefinition[],
): Codec<Drafts, Facts> {
  const definitions = new Map(events.map((definition) => [definition.type, definition]));
  const writers = new Map(events.map((definition) => [definition.type, writerOf(definition)]));
  return {
    encode(draft) {
      const { id, at, type } = draft;
      checkId(id, "event");
      if (!Number.isFinite(at)) throw invalid(type, "at", "the time is missing.");
      if (isUnknown(draft)) return encodeUnknown(draft, definitions);
      const write = writers.get(type);
      if (!write) throw new BoughError("event_unknown", `There is no kept event "${type}".`, { data: { type } });
      return write(draft);
    },
    decode({ seq, id, data }) {
      // Hot in cold loads: a known fact of the current version is the parsed object itself.
      const parsed = parse(data, seq, id);
      const definition = definitions.get(parsed.type);
      if (!definition || definition.version !== (parsed.v ?? 1)) return decodeOther(definition, seq, id, parsed);
      if (parsed.v !== undefined) delete parsed.v;
      // In this order: what was read becomes the same text as what was just written.
      parsed.id = id;
      parsed.seq = seq;
      return parsed;
    },
  };
}

/** The codec of Bough's own facts. */
export const codec: Codec = createCodec(keptEvents);

/** Whether a fact is of a kind that this version does not know. */
export function isUnknown<F extends { readonly type: string }>(fact: F): fact is Extract<F, UnknownDraft> {
  return fact.type.startsWith(unknownPrefix);
}

/** The type as it stands in the log. */
export function typeName(fact: Fact | UnknownFact): string {
  return isUnknown(fact) ? fact.type.slice(unknownPrefix.length) : fact.type;
}

/** Encodes drafts of one type. Hot in every append: the fact is made on the way, so that its text need not be read back. */
function writerOf({ type, version, schema }: KeptDefinition): (draft: DraftStamp) => Encoded {
  const what = `The event "${type}"`;
  const draftSchema = v.strictObject({ ...stamp, ...schema.entries });
  return (draft) => {
    checkDraft(draftSchema, draft);
    const { id, at } = draft;
    const fact: JsonObject = { type, at };
    for (const field of Object.keys(draft)) {
      const value = (draft as DraftStamp & Record<string, unknown>)[field];
      if (value !== undefined && !(field in stamp)) fact[field] = ownJson(value, what, fieldLimits);
    }
    const data = writeJson(version === 1 ? fact : { type, v: version, ...fact }, what, factLimits);
    fact.id = id;
    return { id, data, fact: fact as unknown as Encoded["fact"] };
  };
}

/** The keys in the order in which the newer Bough wrote them, so that the text is the same, byte for byte. */
function encodeUnknown({ id, at, type, payload }: UnknownDraft, known: ReadonlyMap<string, EventDefinition>): Encoded {
  const name = type.slice(unknownPrefix.length);
  const taken = ["type", "at"].find((key) => Object.hasOwn(payload, key));
  if (taken !== undefined || known.has(name)) throw invalid(name, taken, "it is no unknown kind.");
  const what = `The event "${name}"`;
  const own = ownJson(payload, what, factLimits) as JsonObject;
  const { v: version, ...rest } = own;
  const text = { type: name, ...(version !== undefined && { v: version }), at, ...rest };
  return { id, data: writeJson(text, what, factLimits), fact: { id, at, type, payload: own } };
}

// biome-ignore lint/suspicious/noExplicitAny: what was encoded is not checked again, only that it is a fact at all
function parse(data: string, seq: number, id: string): any {
  try {
    const parsed = JSON.parse(data);
    if (typeof parsed.type === "string" && typeof parsed.at === "number") return parsed;
  } catch {}
  throw new BoughError("store_corrupt", `What is stored at ${seq} is not a fact.`, { data: { seq, id } });
}

function checkDraft(schema: v.GenericSchema, draft: DraftStamp): void {
  const checked = v.safeParse(schema, draft);
  if (checked.success) return;
  const issue = checked.issues[0];
  throw invalid(draft.type, v.getDotPath(issue), issue.message);
}

function invalid(type: string, path: string | null | undefined, why: string): BoughError {
  const where = path ? ` at ${path}` : "";
  return new BoughError("event_invalid", `Event "${type}" is not valid${where}: ${why}`, { data: { type, path } });
}

function decodeOther(definition: EventDefinition | undefined, seq: number, id: string, parsed: JsonObject) {
  const { type, at, ...rest } = parsed as JsonObject & { type: string; at: number };
  if (!definition) return { id, at, type: `${unknownPrefix}${type}`, payload: rest, seq } satisfies UnknownFact;
  const { v: version = 1, ...payload } = rest;
  return { seq, id, at, type, ...upcast(definition, Number(version), payload) } as Fact;
}

function upcast(definition: EventDefinition, version: number, payload: JsonObject): JsonObject {
  const { type, version: supported, upcasts } = definition;
  if (version > supported) {
    const sentence = `Event "${type}" was written as version ${version}; this Bough knows ${supported}. Update Bough.`;
    throw new BoughError("store_too_new", sentence, { data: { type, found: version, supported } });
  }
  if (!Number.isInteger(version)) throw new BoughError("event_unknown", `Event "${type}" has no such version.`);
  let current = payload;
  for (let from = version; from < supported; from++) {
    const step = upcasts[from];
    if (!step) throw new BoughError("event_unknown", `Event "${type}" has no upcaster from version ${from}.`);
    current = step(current);
  }
  return current;
}
