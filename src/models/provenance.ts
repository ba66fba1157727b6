// Provenance: what a reply was made from, in a few hashes, and the same request made again from them.
//   Provenance-1. What the log has is named by a position and a hash. Kept as text is only what it does not have: instructions,
//       tools, settings, reminders, and what hooks changed.
//   Provenance-2. A call is hashed as far as it is new: the conversation by its chain (prompt.ts), texts by their identity.
//   Provenance-3. No credential is kept: headers go by their names, and values under the name of a credential not at all.
//   Provenance-4. What can't be kept has a hash all the same, so that a prompt that is made again without it is not taken for the
//       one that was sent.

import { isWellFormed, type Json, type JsonObject, ownJson } from "../base/json.ts";
import { textDigest } from "../base/sha256.ts";
import type { Message, PromptRecord } from "../events/index.ts";
import type { ModelRequest, PromptCaching, PromptMessage, ToolChoice, ToolSpec } from "./port.ts";
import { originOf, type ReasoningKept, toPrompt } from "./prompt.ts";

/** Part of every hash: changes when the same request is sent in another way than before (call-options.ts). */
const rendering = 1;

/** The longest text that is kept, in characters. */
const longestText = 256 * 1024;

/** What a request was built on. */
export interface RequestOrigin {
  /** The prompt as `toPrompt` made it, before any hook. */
  readonly prompt: readonly PromptMessage[];
  /** The position of the log that it shows. */
  readonly upTo: number;
  /** The hashes whose texts the log has. */
  readonly known: readonly { readonly sha: string }[];
}

/** What was sent for a reply, as its fact keeps it; undefined when the prompt is not one that can be told. */
export function recordPrompt(
  sent: ModelRequest,
  marks: readonly number[],
  { prompt, upTo, known }: RequestOrigin,
): PromptRecord | undefined {
  const origin = originOf(prompt);
  if (!origin) return undefined;
  const texts: Record<string, string> = {};
  const keep = (text: string, sha = hashOf(text)) => {
    const isKeepable = () => text.length <= longestText && isWellFormed(text);
    if (!known.some((each) => each.sha === sha) && isKeepable()) texts[sha] = text;
    return sha;
  };
  const { instructions, reasoning } = origin;
  const { tools, reminders = [] } = sent;
  const edits = findEdits(prompt, sent.prompt);
  const record: PromptRecord = { upTo, sha: "", settings: keep(settingsText(sent, reasoning)) };
  if (instructions !== undefined) record.system = keep(instructions);
  if (tools.length > 0) {
    const { text, sha } = toolsText(tools);
    record.tools = keep(text, sha);
  }
  if (reminders.length > 0) record.reminders = keep(JSON.stringify(reminders));
  if (edits.length > 0) record.edits = keepEdits(edits, keep);
  record.sha = hashPrompt(record, origin.hash(), marks);
  if (Object.keys(texts).length > 0) record.texts = texts;
  return record;
}

/** Hashes are only as good as what they cover: all of a prompt, and how it is sent. */
function hashPrompt(record: PromptRecord, conversation: string, marks: readonly number[]): string {
  const { system = "", tools = "", settings, edits = "", reminders = "" } = record;
  return textDigest([rendering, conversation, system, tools, settings, edits, reminders, marks.join()].join("\n"));
}

/** Texts that were hashed lately: an agent says the same in every call. */
const recent = new Map<string, string>();
const mostRecent = 64;
const longestRecent = 16 * 1024;

function hashOf(text: string): string {
  const known = recent.get(text);
  if (known !== undefined) return known;
  const sha = textDigest(text);
  if (text.length > longestRecent) return sha;
  if (recent.size >= mostRecent) recent.delete(recent.keys().next().value!);
  recent.set(text, sha);
  return sha;
}

const toolTexts = new WeakMap<readonly ToolSpec[], { readonly text: string; readonly sha: string }>();

function toolsText(tools: readonly ToolSpec[]): { readonly text: string; readonly sha: string } {
  let known = toolTexts.get(tools);
  if (!known) {
    const text = JSON.stringify(tools, withoutCredentials);
    known = { text, sha: textDigest(text) };
    toolTexts.set(tools, known);
  }
  return known;
}

/** The model and everything that a call says beside its messages and tools. */
interface KeptSettings {
  readonly model: Pick<ModelRequest["model"], "provider" | "modelId" | "specificationVersion">;
  readonly reasoning: ReasoningKept;
  readonly settings: Omit<ModelRequest["settings"], "headers">;
  /** Names only. */
  readonly headers?: readonly string[];
  readonly toolChoice?: ToolChoice;
  readonly responseSchema?: JsonObject;
  readonly promptCaching?: PromptCaching;
}

function settingsText(request: ModelRequest, reasoning: ReasoningKept): string {
  const { model, settings, toolChoice, responseSchema, promptCaching } = request;
  const { provider, modelId, specificationVersion } = model;
  const { headers, ...said } = settings;
  const kept = {
    model: { provider, modelId, specificationVersion },
    ...{
      reasoning,
      settings: said,
      headers: headers && Object.keys(headers),
      toolChoice,
      responseSchema,
      promptCaching,
    },
  };
  return said.providerOptions ? JSON.stringify(kept, withoutCredentials) : JSON.stringify(kept);
}

const credential = /(api|access|secret|private|auth)[-_]?key|authorization|bearer|password|secret|credential|token$/i;
/** Stands for a value that is not kept (Provenance-3). */
const withheld = "[not kept]";

function withoutCredentials(key: string, value: unknown): unknown {
  return typeof value === "string" && credential.test(key) ? withheld : value;
}

/** What a hook put in the place of messages: `remove` of them from `at` on. */
export interface PromptEdit {
  readonly at: number;
  readonly remove: number;
  readonly insert: readonly PromptMessage[];
}

/** Provenance-4: what is no JSON is not kept. */
function keepEdits(edits: readonly PromptEdit[], keep: (text: string) => string): string {
  try {
    const own = ownJson(edits.map(bareEdit), "An edit", { depth: 64, forbidden: new Set() });
    return keep(JSON.stringify(own));
  } catch {
    return "unkept";
  }
}

function bareEdit({ at, remove, insert }: PromptEdit) {
  return { at, remove, insert: insert.map(bareMessage) };
}

/** What a provider looks at of a message. */
export function bareMessage({ role, content, providerOptions }: PromptMessage): PromptMessage {
  return providerOptions === undefined ? { role, content } : { role, content, providerOptions };
}

/** How the messages that were sent differ from those that were built; the fewest that say so when none were moved. */
function findEdits(built: readonly PromptMessage[], sent: readonly PromptMessage[]): PromptEdit[] {
  if (built === sent) return [];
  if (built.length === sent.length) {
    return sent.flatMap((message, at) =>
      isSameMessage(built[at]!, message) ? [] : [{ at, remove: 1, insert: [message] }],
    );
  }
  const least = Math.min(built.length, sent.length);
  let start = 0;
  while (start < least && isSameMessage(built[start]!, sent[start]!)) start++;
  let end = 0;
  while (end < least - start && isSameMessage(built.at(-1 - end)!, sent.at(-1 - end)!)) end++;
  return [{ at: start, remove: built.length - end - start, insert: sent.slice(start, sent.length - end) }];
}

function isSameMessage(a: PromptMessage, b: PromptMessage): boolean {
  return a === b || isSame(bareMessage(a), bareMessage(b));
}

/** Whether both have the same JSON text, the order of keys included. */
function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  const [keys, others] = [Object.keys(a), Object.keys(b)];
  if (keys.length !== others.length || Array.isArray(a) !== Array.isArray(b)) return false;
  return keys.every(
    (key, i) => key === others[i] && isSame((a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key]),
  );
}

/** What a request is made again from. */
export interface PromptParts {
  readonly record: PromptRecord;
  /** The texts that were found, by hash. */
  readonly texts: ReadonlyMap<string, string>;
  /** The messages as the branch had them at `record.upTo`. */
  readonly history: readonly Message[];
  readonly turn: readonly Message[];
}

/** A request as it was, as far as it can be told. */
export interface RebuiltRequest {
  readonly request: ModelRequest;
  /** The prompt as it was built, and what hooks made of it. */
  readonly built: readonly PromptMessage[];
  readonly edits: readonly PromptEdit[];
  /** What could not be kept, or is not there any more. */
  readonly missing: readonly ("instructions" | "tools" | "settings" | "reminders" | "edits")[];
  /** What was left out on purpose (Provenance-3). */
  readonly withheld: readonly string[];
  /** Whether the hash is that of the record, for a request that is sent with these marks. */
  isProved(marks: readonly number[]): boolean;
}

export function rebuildRequest({ record, texts, history, turn }: PromptParts): RebuiltRequest {
  const missing: RebuiltRequest["missing"][number][] = [];
  const textOf = (sha: string | undefined, what: (typeof missing)[number]) => {
    const text = sha === undefined ? undefined : texts.get(sha);
    const isIntact = text !== undefined && textDigest(text) === sha;
    if (sha !== undefined && !isIntact) missing.push(what);
    return isIntact ? text : undefined;
  };
  const parse = <T>(text: string | undefined): T | undefined => (text === undefined ? undefined : JSON.parse(text));
  const instructions = textOf(record.system, "instructions");
  const tools = parse<ToolSpec[]>(textOf(record.tools, "tools")) ?? [];
  const kept = parse<KeptSettings>(textOf(record.settings, "settings")) ?? unknownSettings;
  const reminders = parse<string[]>(textOf(record.reminders, "reminders"));
  const edits = parse<PromptEdit[]>(textOf(record.edits, "edits")) ?? [];
  const { model, reasoning, settings, headers = [], ...rest } = kept;
  const built = toPrompt({ ...(instructions !== undefined && { instructions }), history, turn, reasoning });
  const names = headers.map((name) => `settings.headers.${name}`);
  return {
    request: {
      model: { ...model, doStream: () => Promise.reject(new Error("A request that was made again is not sent.")) },
      ...{ prompt: applyEdits(built, edits), tools, settings, ...rest, ...(reminders && { reminders }) },
    },
    ...{ built, edits, missing },
    withheld: [...names, ...findWithheld({ settings, tools } as unknown as Json, "")],
    isProved: (marks) => missing.length === 0 && hashPrompt(record, originOf(built)!.hash(), marks) === record.sha,
  };
}

const unknownSettings: KeptSettings = {
  model: { provider: "unknown", modelId: "unknown", specificationVersion: "v4" },
  reasoning: "turn",
  settings: {},
};

function applyEdits(built: readonly PromptMessage[], edits: readonly PromptEdit[]): readonly PromptMessage[] {
  const prompt = built.slice();
  // From the end, so that positions stay those of what was built.
  for (const { at, remove, insert } of edits.slice().reverse()) prompt.splice(at, remove, ...insert);
  return prompt;
}

function findWithheld(value: Json, path: string): string[] {
  if (value === withheld) return [path];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) => findWithheld(item, path === "" ? key : `${path}.${key}`));
}
