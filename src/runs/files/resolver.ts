// FileResolver: references to stored content in the form that a model takes, right before it is called. It owns the bytes that
// the calls of one run send, and what the model has turned out not to take.
//   FileResolver-1. No provider sees an address of stored content.
//   FileResolver-2. How a file is sent follows from the prompt, the model and the options, so that a longer prompt begins with
//       the shorter one byte for byte, and the provider's cache holds.
//   FileResolver-3. A file that can't be read is told once (`content-fail`), and its note is sent; the call goes on.

import type { JsonObject } from "../../base/json.ts";
import { isFullType } from "../../base/media-type.ts";
import { contentIdOf, type FilePart } from "../../events/files.ts";
import { acceptedTypes, type FilePlace, isAccepted, takesUrl, unsupportedFeature } from "../../models/accepts.ts";
import type { LanguageModel, ModelRequest } from "../../models/index.ts";
import { describePrompt, factsOf } from "../../models/specification.ts";
import { countLeftOut } from "./budget.ts";
import { beginningOf, noteOf, quoteFile } from "./notes.ts";
import type { FilePlan } from "./options.ts";
import { findFiles, type PlacedFile, replaceFiles, type Sent } from "./places.ts";

/** What is known of stored content. */
export interface StoredFile {
  readonly id: string;
  readonly size: number;
  readonly mediaType: string;
  readonly name?: string;
}

/** Where the files of a branch come from. */
export interface FileSource {
  /** Throws `content_not_found`. */
  find(id: string): Promise<StoredFile>;
  read(file: StoredFile): Promise<Uint8Array>;
  /** The text of a file that is sent as text; undefined when it has none. */
  text(file: StoredFile, mediaType: string): Promise<string | undefined>;
}

export interface FileResolverOptions {
  readonly source: FileSource;
  readonly plan: FilePlan;
  /** What a call of this model may carry, where a provider has refused more before. */
  readonly budget?: (model: LanguageModel) => Promise<number>;
  /** Told once for each file that could not be sent. */
  onFail(contentId: string, error: unknown): void;
}

/** How one file is sent. */
type Form =
  | { readonly kind: "as-is" }
  | { readonly kind: "bytes"; readonly stored: StoredFile; readonly mediaType: string; readonly moved: boolean }
  | { readonly kind: "text"; readonly text: string; readonly mediaType: string }
  | { readonly kind: "note"; readonly size?: number; readonly why: string };

const gone = "no longer available";
/** How often half of the bytes are tried before a request goes without any. */
const mostHalvings = 3;

export class FileResolver {
  readonly #options: FileResolverOptions;
  readonly #forms = new Map<string, Promise<Form>>();
  readonly #bytes = new Map<string, Promise<Uint8Array>>();
  readonly #failed = new Set<string>();
  /** Media types that a model turned out not to take. */
  readonly #refused = new Set<string>();
  /** How many bytes of files a call may carry; unknown until the first call with files. */
  #perCall: number | undefined;
  /** How often that was lowered in this run. */
  #lowered = 0;
  /** How many the last call carried. */
  #sentBytes = 0;
  #sentTypes: readonly string[] = [];

  constructor(options: FileResolverOptions) {
    this.#options = options;
  }

  /** The request with its files as the model takes them. A request without files is returned as it is. */
  async resolve(request: ModelRequest): Promise<ModelRequest> {
    const { prompt, model } = request;
    const facts = factsOf(prompt);
    this.#sentBytes = 0;
    this.#sentTypes = [];
    const files = facts?.isPlain ? [] : findFiles(prompt);
    if (files.length === 0) return request;
    this.#perCall ??= await this.#initialBudget(model);
    const forms = await Promise.all(files.map((file) => this.#formOf(file, model)));
    const sent = await this.#send(files, forms);
    const resolved = replaceFiles(prompt, sent);
    if (facts) describePrompt(resolved, { ...facts, isPlain: false });
    return { ...request, prompt: resolved };
  }

  async #initialBudget(model: LanguageModel): Promise<number> {
    const { plan, budget } = this.#options;
    return Math.min(plan.inline.perCall, (await budget?.(model)) ?? plan.inline.perCall);
  }

  /**
   * After a provider has refused a request as too large: how many bytes of files the next one may carry. Half as many as the
   * last, and none after a few attempts; undefined when the last one had none.
   */
  sendLess(): number | undefined {
    if (this.#sentBytes === 0) return undefined;
    this.#lowered++;
    this.#perCall = this.#lowered > mostHalvings ? 0 : Math.floor(this.#sentBytes / 2);
    return this.#perCall;
  }

  /** After a provider package has refused what it was given: whether it was a file that can be sent in another form. */
  learnRefusal(error: unknown, model: LanguageModel): boolean {
    const feature = unsupportedFeature(error);
    if (feature === undefined) return false;
    const named = this.#sentTypes.filter((type) => feature.includes(type));
    const types = named.length > 0 ? named : this.#sentTypes.filter((type) => !type.startsWith("image/"));
    const news = types.map((type) => refusalKey(model, type)).filter((key) => !this.#refused.has(key));
    for (const key of news) this.#refused.add(key);
    if (news.length > 0) this.#forms.clear();
    return news.length > 0;
  }

  /** Decided once for each content and model (FileResolver-2). */
  #formOf({ file, place }: PlacedFile, model: LanguageModel): Promise<Form> {
    const { mediaType, filename, data } = file;
    const key = JSON.stringify([model.provider, model.modelId, place, file.type, mediaType, filename, data.url ?? ""]);
    let form = data.type === "url" ? this.#forms.get(key) : undefined;
    if (!form) {
      form = this.#decide(file, place, model);
      if (data.type === "url") this.#forms.set(key, form);
    }
    return form;
  }

  async #decide(file: FilePart, place: FilePlace, model: LanguageModel): Promise<Form> {
    const id = contentIdOf(file);
    if (id !== undefined) return this.#decideStored(file, id, { place, model });
    const { type, url, text } = Object(file.data) as { type?: unknown; url?: unknown; text?: unknown };
    if (type === "text" && !this.#takes(model, place, "text/plain")) {
      return { kind: "text", text: String(text), mediaType: file.mediaType };
    }
    if (type !== "url") return { kind: "as-is" };
    const isTaken = place !== "assistant" && (await takesUrl(model, String(url), file.mediaType));
    return isTaken ? { kind: "as-is" } : { kind: "note", why: `not sent (the model can't open ${String(url)})` };
  }

  async #decideStored(
    file: FilePart,
    id: string,
    { place, model }: { place: FilePlace; model: LanguageModel },
  ): Promise<Form> {
    const { source, plan } = this.#options;
    try {
      const stored = await source.find(id);
      const { size } = stored;
      const mediaType = isFullType(file.mediaType) ? file.mediaType : stored.mediaType;
      const here = this.#takes(model, place, mediaType);
      const moved = !here && place === "tool" && this.#takes(model, "user", mediaType);
      const fits = size <= plan.inline.perFile;
      if ((here || moved) && fits) return { kind: "bytes", stored, mediaType, moved };
      if (place === "assistant") return { kind: "note", size, why: "sent by you" };
      const text = await source.text(stored, mediaType).catch((error) => this.#fail(id, error));
      if (text !== undefined) return { kind: "text", text: beginningOf(text, plan.textLength, id), mediaType };
      const takenElse = this.#failed.has(id) ? "its text can't be read" : `the model takes no ${mediaType}`;
      const why = here || moved ? "too large for this call" : takenElse;
      return { kind: "note", size, why: `not sent (${why})` };
    } catch (error) {
      this.#fail(id, error);
      return { kind: "note", why: gone };
    }
  }

  #takes(model: LanguageModel, place: FilePlace, mediaType: string): boolean {
    if (this.#refused.has(refusalKey(model, mediaType))) return false;
    return isAccepted(acceptedTypes(model, this.#options.plan.accepts)[place], mediaType);
  }

  async #send(files: readonly PlacedFile[], forms: readonly Form[]): Promise<Map<FilePart, Sent>> {
    const leftOut = this.#leftOut(files, forms);
    const sent = new Map<FilePart, Sent>();
    const types = new Set<string>();
    for (const [i, { file, place }] of files.entries()) {
      const form = forms[i]!;
      if (form.kind === "as-is") continue;
      const made =
        form.kind === "bytes"
          ? leftOut.has(i)
            ? noted(file, form.stored.size, "not sent (too large for this call)")
            : await this.#withBytes(file, form)
          : form.kind === "text"
            ? { part: textPart(quoteFile({ ...file, mediaType: form.mediaType }, form.text)) }
            : noted(file, form.size, form.why);
      if (form.kind === "bytes") types.add(form.mediaType);
      // What a model thought in pictures is nothing to tell it in words.
      sent.set(file, file.type === "reasoning-file" && place === "assistant" && form.kind !== "bytes" ? {} : made);
    }
    this.#sentTypes = [...types];
    this.#forget(forms.filter((_, i) => !leftOut.has(i)));
    return sent;
  }

  /** The positions of files that go over the budget. */
  #leftOut(files: readonly PlacedFile[], forms: readonly Form[]): Set<number> {
    const groups = new Map<number, { sizes: number[]; at: number[] }>();
    for (const [i, form] of forms.entries()) {
      if (form.kind !== "bytes") continue;
      const { at } = files[i]!;
      const group = groups.get(at) ?? { sizes: [], at: [] };
      group.sizes.push(form.stored.size);
      group.at.push(i);
      groups.set(at, group);
    }
    const all = [...groups.values()];
    const positions = all.flatMap(({ at }) => at);
    const sizes = all.flatMap((group) => group.sizes);
    const count = countLeftOut(
      all.map((group) => group.sizes),
      this.#perCall ?? 0,
    );
    this.#sentBytes = sizes.slice(count).reduce((sum, size) => sum + size, 0);
    return new Set(positions.slice(0, count));
  }

  async #withBytes(file: FilePart, form: Extract<Form, { kind: "bytes" }>): Promise<Sent> {
    const { stored, mediaType, moved } = form;
    try {
      const data = { type: "data", data: await this.#read(stored) } as unknown as JsonObject;
      const part = { ...file, mediaType, data };
      if (!moved) return { part };
      const why = "in the next message";
      return { ...noted(file, stored.size, why), moved: part };
    } catch (error) {
      this.#fail(stored.id, error);
      return noted(file, stored.size, gone);
    }
  }

  /** Holds no bytes that are not sent any more. */
  #forget(sent: readonly Form[]): void {
    const ids = new Set(sent.map((form) => (form.kind === "bytes" ? form.stored.id : "")));
    for (const id of this.#bytes.keys()) if (!ids.has(id)) this.#bytes.delete(id);
  }

  #read(stored: StoredFile): Promise<Uint8Array> {
    let bytes = this.#bytes.get(stored.id);
    if (!bytes) {
      bytes = this.#options.source.read(stored);
      this.#bytes.set(stored.id, bytes);
      bytes.catch(() => this.#bytes.delete(stored.id));
    }
    return bytes;
  }

  #fail(id: string, error: unknown): undefined {
    if (this.#failed.has(id)) return;
    this.#failed.add(id);
    this.#options.onFail(id, error);
  }
}

function noted(file: FilePart, size: number | undefined, why: string): Sent {
  return { part: textPart(noteOf(file, size, why)) };
}

function textPart(text: string): object {
  return { type: "text", text };
}

function refusalKey({ provider, modelId }: LanguageModel, mediaType: string): string {
  return `${provider}/${modelId} ${mediaType}`;
}
