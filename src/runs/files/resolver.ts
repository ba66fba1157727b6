// FileResolver: references to stored content in the form that a model takes, right before it is called. It owns the bytes that
// the calls of one run send, and what the model has turned out not to take.
//   FileResolver-1. No provider sees an address of stored content.
//   FileResolver-2. How a file is sent follows from the prompt, the model and the options, so that a longer prompt begins with
//       the shorter one byte for byte, and the provider's cache holds.
//   FileResolver-3. A file that can't be read is told once (`content-fail`), and its note is sent; the call goes on.

import type { JsonObject } from "../../base/json.ts";
import { isFullType } from "../../base/media-type.ts";
import { contentIdOf, type FilePart } from "../../events/files.ts";
import {
  acceptedTypes,
  type FilePlace,
  isAccepted,
  takesReference,
  takesUrl,
  unsupportedFeature,
} from "../../models/accepts.ts";
import type { LanguageModel, ModelRequest } from "../../models/index.ts";
import { collectTexts } from "../../models/overflow.ts";
import { describePrompt, factsOf } from "../../models/specification.ts";
import { countLeftOut } from "./budget.ts";
import { beginningOf, noteOf, quoteFile } from "./notes.ts";
import type { FilePlan } from "./options.ts";
import { findFiles, type PlacedFile, replaceFiles, type Sent } from "./places.ts";
import { type Elsewhere, isFresh, type StoredFile } from "./stored.ts";

/** Where the files of a branch come from. */
export interface FileSource {
  /** Throws `content_not_found`. */
  find(id: string): Promise<StoredFile>;
  read(file: StoredFile): Promise<Uint8Array>;
  /** The text of a file that is sent as text; undefined when it has none. */
  text(file: StoredFile, mediaType: string): Promise<string | undefined>;
  /** The file at the model's provider, if it is there or to be uploaded. */
  reference(file: StoredFile, model: LanguageModel): Promise<Elsewhere | undefined>;
  /** The provider does not have it any more. */
  forget(id: string, model: LanguageModel): Promise<void>;
  /** Where others can download it. */
  address(file: StoredFile): Promise<Elsewhere | undefined>;
  now(): number;
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
  | ({ readonly kind: "bytes" } & Carried)
  | ({ readonly kind: "elsewhere"; readonly at: Elsewhere } & Carried)
  | { readonly kind: "text"; readonly text: string; readonly mediaType: string }
  | { readonly kind: "note"; readonly size?: number; readonly why: string };

/** A file that the model gets as a file. */
interface Carried {
  readonly stored: StoredFile;
  readonly mediaType: string;
  /** Into a message of its own: the model takes files from a user only. */
  readonly moved: boolean;
}

/** The files of a prompt and how each is sent. */
interface Decided {
  readonly files: readonly PlacedFile[];
  readonly forms: readonly Form[];
  readonly model: LanguageModel;
}

const gone = "no longer available";
const tooLarge = "not sent (too large for this call)";
/** How often half of the bytes are tried before a request goes without any. */
const mostHalvings = 3;

export class FileResolver {
  readonly #options: FileResolverOptions;
  readonly #forms = new Map<string, Promise<Form>>();
  readonly #bytes = new Map<string, Promise<Uint8Array>>();
  /** Contents that can't be read, and those that something was told about (FileResolver-3). */
  readonly #failed = new Set<string>();
  readonly #told = new Set<string>();
  /** Media types that a model turned out not to take. */
  readonly #refused = new Set<string>();
  /** Contents by what the provider knows them by, as it was last sent. */
  readonly #named = new Map<string, string>();
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
    const sent = await this.#send({ files, forms, model });
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

  /** After a provider has refused a call: whether it was for files that it does not have any more. */
  async forgetLost(error: unknown, model: LanguageModel): Promise<boolean> {
    if (this.#named.size === 0) return false;
    const said = collectTexts(error).join("\n");
    const lost = [...this.#named].filter(([name]) => said.includes(name));
    for (const [name, id] of lost) {
      this.#named.delete(name);
      await this.#options.source.forget(id, model);
    }
    if (lost.length > 0) this.#forms.clear();
    return lost.length > 0;
  }

  /** Decided once for each content and model (FileResolver-2), and again when what names it elsewhere expires. */
  #formOf({ file, place }: PlacedFile, model: LanguageModel): Promise<Form> {
    const { mediaType, filename, data } = file;
    const decide = () => this.#decide(file, place, model);
    if (data.type !== "url") return decide();
    const isGood = (form: Form) => form.kind !== "elsewhere" || isFresh(form.at, this.#options.source.now());
    const key = JSON.stringify([model.provider, model.modelId, place, file.type, mediaType, filename, data.url ?? ""]);
    const form = this.#forms.get(key)?.then((known) => (isGood(known) ? known : decide())) ?? decide();
    this.#forms.set(key, form);
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
      if (here || moved) {
        const carried = { stored, mediaType, moved };
        const at = await this.#elsewhere(carried, here ? place : "user", model);
        if (at) return { kind: "elsewhere", at, ...carried };
        if (size <= plan.inline.perFile) return { kind: "bytes", ...carried };
      }
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

  /** The file at the provider; for one that is too large to be carried, an address that the provider opens. */
  async #elsewhere(carried: Carried, place: FilePlace, model: LanguageModel): Promise<Elsewhere | undefined> {
    const { source, plan } = this.#options;
    const { stored, mediaType } = carried;
    const isReferable = takesReference(model, place, mediaType);
    const file = { ...stored, mediaType };
    const known = isReferable
      ? await source.reference(file, model).catch((error) => this.#tell(stored.id, error))
      : undefined;
    if (known) return known;
    return stored.size > plan.inline.perFile ? this.#address(carried, model) : undefined;
  }

  async #address({ stored, mediaType }: Carried, model: LanguageModel): Promise<Elsewhere | undefined> {
    const at = await this.#options.source.address(stored).catch((error) => this.#tell(stored.id, error));
    return at && (await takesUrl(model, String(at.data.url), mediaType)) ? at : undefined;
  }

  #takes(model: LanguageModel, place: FilePlace, mediaType: string): boolean {
    if (this.#refused.has(refusalKey(model, mediaType))) return false;
    return isAccepted(acceptedTypes(model, this.#options.plan.accepts)[place], mediaType);
  }

  async #send({ files, forms, model }: Decided): Promise<Map<FilePart, Sent>> {
    const leftOut = this.#leftOut(files, forms);
    const sent = new Map<FilePart, Sent>();
    this.#sentTypes = forms.flatMap((form) => ("mediaType" in form && form.kind !== "text" ? [form.mediaType] : []));
    this.#named.clear();
    for (const [i, { file, place }] of files.entries()) {
      const form = forms[i]!;
      if (form.kind === "as-is") continue;
      const made =
        form.kind === "bytes" && leftOut.has(i) ? await this.#instead(file, form, model) : await this.#sent(file, form);
      const isFile = form.kind === "bytes" || form.kind === "elsewhere";
      // What a model thought in pictures is nothing to tell it in words.
      sent.set(file, file.type === "reasoning-file" && place === "assistant" && !isFile ? {} : made);
    }
    this.#forget(forms.filter((_, i) => !leftOut.has(i)));
    return sent;
  }

  async #sent(file: FilePart, form: Exclude<Form, { kind: "as-is" }>): Promise<Sent> {
    switch (form.kind) {
      case "bytes":
        return this.#withBytes(file, form);
      case "elsewhere":
        return this.#withName(file, form);
      case "text":
        return { part: textPart(quoteFile({ ...file, mediaType: form.mediaType }, form.text)) };
      case "note":
        return noted(file, form.size, form.why);
    }
  }

  /** In the place of bytes that are too many: where the provider finds them, or a note. */
  async #instead(file: FilePart, carried: Carried, model: LanguageModel): Promise<Sent> {
    const at = await this.#address(carried, model);
    return at ? this.#withName(file, { at, ...carried }) : noted(file, carried.stored.size, tooLarge);
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

  async #withBytes(file: FilePart, carried: Carried): Promise<Sent> {
    const { stored } = carried;
    try {
      return placed(file, carried, { type: "data", data: await this.#read(stored) } as unknown as JsonObject);
    } catch (error) {
      this.#fail(stored.id, error);
      return noted(file, stored.size, gone);
    }
  }

  #withName(file: FilePart, { at, ...carried }: Carried & { readonly at: Elsewhere }): Sent {
    const { reference = {} } = at.data as { reference?: JsonObject };
    for (const name of Object.values(reference)) this.#named.set(String(name), carried.stored.id);
    return placed(file, carried, at.data);
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
    this.#failed.add(id);
    this.#tell(id, error);
  }

  #tell(id: string, error: unknown): undefined {
    if (this.#told.has(id)) return;
    this.#told.add(id);
    this.#options.onFail(id, error);
  }
}

/** The file with its data, where it stands or in a message after it. */
function placed(file: FilePart, { stored, mediaType, moved }: Carried, data: JsonObject): Sent {
  const part = { ...file, mediaType, data };
  return moved ? { ...noted(file, stored.size, "in the next message"), moved: part } : { part };
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
