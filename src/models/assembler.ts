// MessageAssembler: makes the log's message of a model's parts.
//   Assembler-1. Blocks stand in the order in which they began, however their deltas are interleaved.
//   Assembler-2. It never throws: what a provider does against the specification loses as little as possible.
//   Assembler-3. A delta only pushes its text; texts are joined when the content is asked for.
//   Assembler-4. What it gives can be stored: calls have names and ids that are their own, inputs pass the log's limits.

import { base64 } from "../base/bytes.ts";
import { factLimits, type Json, type JsonObject, ownJson } from "../base/json.ts";
import type { Part, ToolCallPart } from "../events/index.ts";
import type { ModelPart, OtherModelPart, Usage } from "./port.ts";
import { flatUsage } from "./usage.ts";

/** A text or reasoning block that deltas are added to. */
interface Block {
  readonly type: "text" | "reasoning";
  readonly id: string;
  readonly chunks: string[];
  providerOptions: JsonObject | undefined;
  hasEnded: boolean;
}

type Metadata = { readonly providerMetadata?: JsonObject };

/** Said once when a message begins, and read back by no provider. */
const notices: ReadonlySet<unknown> = new Set(["anthropic.message_start"]);

/** Leaves room for the fact around it: a message's content, or a question about a call. */
const inputLimits = { ...factLimits, depth: factLimits.depth - 4 };

/** Collects the parts of one answer into a message's content, its calls, its usage and why it ended. */
export class MessageAssembler {
  readonly #blocks: (Block | Part)[] = [];
  readonly #texts = new Map<string, Block>();
  readonly #reasonings = new Map<string, Block>();
  readonly #calls: ToolCallPart[] = [];
  readonly #callIds = new Set<string>();
  #newest: Block | undefined;
  #usage: Usage = {};
  #finishReason: string | undefined;
  #isFinished = false;

  /** The parts of the message so far. */
  get content(): Part[] {
    return this.#blocks.flatMap((block) => (isBlock(block) ? joined(block) : [block]));
  }

  /** The calls that wait for a result from us. */
  get calls(): readonly ToolCallPart[] {
    return this.#calls;
  }

  get usage(): Usage {
    return this.#usage;
  }

  get finishReason(): string | undefined {
    return this.#finishReason;
  }

  /** False at the end of a stream means that the call was interrupted. */
  get isFinished(): boolean {
    return this.#isFinished;
  }

  /** The text so far, everything else left out. */
  get text(): string {
    return this.#blocks.map((block) => (isBlock(block) && block.type === "text" ? block.chunks.join("") : "")).join("");
  }

  add(part: ModelPart): void {
    switch (part.type) {
      case "text-delta":
        this.#extend("text", part);
        break;
      case "reasoning-delta":
        this.#extend("reasoning", part);
        break;
      case "text-start":
      case "reasoning-start":
        this.#begin(part.type === "text-start" ? "text" : "reasoning", part);
        break;
      case "text-end":
      case "reasoning-end":
        this.#end(part.type === "text-end" ? "text" : "reasoning", part);
        break;
      case "tool-call":
        this.#addCall(part);
        break;
      case "finish":
        this.#finish(part);
        break;
      default:
        this.#addOther(part as OtherModelPart);
    }
  }

  #extend(type: Block["type"], part: { readonly id: string; readonly delta: string } & Metadata): void {
    let block = this.#newest;
    if (block?.id !== part.id || block.type !== type) {
      // Some providers go on after the end, or never say that they begin.
      block = this.#blocksOf(type).get(part.id) ?? this.#open(type, part.id);
      this.#newest = block;
    }
    block.chunks.push(part.delta);
    if (part.providerMetadata) learn(block, part.providerMetadata);
  }

  #begin(type: Block["type"], part: { readonly id: string } & Metadata): void {
    const known = this.#blocksOf(type).get(part.id);
    // An id that begins again after its end is a block of its own.
    const block = known && !known.hasEnded ? known : this.#open(type, part.id);
    this.#newest = block;
    learn(block, part.providerMetadata);
  }

  #end(type: Block["type"], part: { readonly id: string } & Metadata): void {
    const block = this.#blocksOf(type).get(part.id);
    if (!block) return;
    block.hasEnded = true;
    learn(block, part.providerMetadata);
  }

  #open(type: Block["type"], id: string): Block {
    const block: Block = { type, id, chunks: [], providerOptions: undefined, hasEnded: false };
    this.#blocks.push(block);
    this.#blocksOf(type).set(id, block);
    return block;
  }

  #blocksOf(type: Block["type"]): Map<string, Block> {
    return type === "text" ? this.#texts : this.#reasonings;
  }

  #addCall(part: Extract<ModelPart, { type: "tool-call" }>): void {
    const call: ToolCallPart = {
      type: "tool-call",
      toolCallId: this.#ownId(part.toolCallId),
      toolName: part.toolName || "unnamed",
      input: inputOf(part.input),
      ...(part.providerExecuted ? { providerExecuted: true } : {}),
      ...options(part),
    };
    this.#blocks.push(call);
    if (!part.providerExecuted) this.#calls.push(call);
  }

  /** Every call needs an id of its own to have a result of its own, also from servers that number badly. */
  #ownId(given: string): string {
    let id = given || "call";
    for (let n = 2; this.#callIds.has(id); n++) id = `${given || "call"}-${n}`;
    this.#callIds.add(id);
    return id;
  }

  #finish(part: Extract<ModelPart, { type: "finish" }>): void {
    const { finishReason: reason } = part;
    this.#finishReason = typeof reason === "string" ? reason : reason?.unified;
    this.#usage = flatUsage(part.usage);
    // Some providers say in a finish part that there was no end.
    this.#isFinished = this.#finishReason !== "interrupted";
  }

  #addOther(part: OtherModelPart): void {
    const made = otherPart(part);
    if (made) this.#blocks.push(made);
  }
}

function isBlock(block: Block | Part): block is Block {
  return "chunks" in block;
}

/** An empty text says nothing and providers refuse it; empty reasoning may carry what the provider needs back. */
function joined({ type, chunks, providerOptions }: Block): Part[] {
  const text = chunks.join("");
  if (text === "" && (type === "text" || !providerOptions)) return [];
  return [{ type, text, ...(providerOptions ? { providerOptions } : {}) } as Part];
}

/** Metadata comes with any part of a block; each provider's is merged. */
function learn(block: Block, metadata: JsonObject | undefined): void {
  if (!metadata) return;
  const merged: JsonObject = { ...block.providerOptions };
  for (const [provider, value] of Object.entries(metadata)) {
    merged[provider] = { ...(merged[provider] as JsonObject), ...(value as JsonObject) };
  }
  block.providerOptions = merged;
}

function options(part: Metadata): { providerOptions?: JsonObject } {
  return part.providerMetadata ? { providerOptions: part.providerMetadata } : {};
}

/** The input a call has in the log: what is no JSON that can be kept stays a text, for validation to refuse. */
function inputOf(text: unknown): Json {
  if (typeof text === "string" && text.trim() === "") return {};
  try {
    const input = typeof text === "string" ? JSON.parse(text) : text;
    return ownJson(input, "The input", inputLimits);
  } catch {
    return String(text);
  }
}

function otherPart(part: OtherModelPart): Part | undefined {
  switch (part.type) {
    case "tool-result":
      return part.preliminary ? undefined : resultPart(part);
    case "file":
    case "reasoning-file":
      return {
        type: part.type,
        mediaType: part.mediaType as string,
        data: fileData(part.data),
        ...options(part as Metadata),
      };
    case "custom":
      return notices.has(part.kind)
        ? undefined
        : { type: "custom", kind: part.kind as string, ...options(part as Metadata) };
    default:
      return undefined;
  }
}

function resultPart(part: OtherModelPart): Part {
  const value = part.result ?? null;
  const kind = part.isError ? "error-json" : typeof value === "string" ? "text" : "json";
  return {
    type: "tool-result",
    toolCallId: part.toolCallId as string,
    toolName: part.toolName as string,
    output: { type: kind, value },
    ...options(part as Metadata),
  };
}

/** V4 tags its data, V3 gives it bare; either may be bytes. */
function fileData(data: unknown): JsonObject {
  const tagged = data as { type?: unknown; data?: unknown; url?: unknown };
  if (tagged?.type === "url") return { type: "url", url: String(tagged.url) };
  const bare = tagged?.type === "data" ? tagged.data : data;
  return { type: "data", data: bare instanceof Uint8Array ? base64(bare) : String(bare) };
}
