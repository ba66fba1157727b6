// summary(): has a model summarise a range of messages.
//   Summary-1. The request rides the provider's cache: it is the very request of the next call, with one more text at its end.
//       Instructions, tools and tool choice stay as they are, because a change of any of them loses the cached prefix.
//   Summary-2. What can't ride it goes as text: with another model, when the next call is too long already, or when the model
//       answered with calls. The text is within a share of the window, and halved once when it is refused all the same.
//   Summary-3. An answer that is empty or goes round in circles is no summary.

import { BoughError } from "../../base/errors.ts";
import { checkOptions, number, oneOf, optionTable, text } from "../../base/options.ts";
import { tokenRatios } from "../../models/estimate.ts";
import { addUsage, type LanguageModel, type ModelChoice, type ModelRequest, type Usage } from "../../models/index.ts";
import { contextWindow } from "../../models/windows.ts";
import type {
  CompactionStrategy,
  StrategyInput,
  StrategyModel,
  StrategyOutput,
  StrategyReply,
} from "../../sessions/compaction/port.ts";
import { toPlainText } from "./plain-text.ts";
import { summaryMessage, summaryPrompt } from "./summary-prompt.ts";

/** How a summary is made. */
export interface SummaryOptions {
  /** The model that writes it: a model object, a name from the agent's `models` or `"provider/model"` (default: the conversation's own). */
  readonly model?: ModelChoice;
  /** Replaces the text that asks for the summary. */
  readonly prompt?: string;
  /** The longest summary in tokens (default 4,096). */
  readonly maxTokens?: number;
  /** How long it may take (default 60,000). */
  readonly timeoutMs?: number;
  /** Whether the conversation's own request is used, which the provider has cached (default), or the range is sent as text. */
  readonly via?: "cache" | "text";
}

const optionChecks = optionTable<SummaryOptions>({
  model: {
    fits: (value) => typeof value === "string" || typeof Object(value).doStream === "function",
    wanted: 'a model object or "provider/model"',
  },
  prompt: text,
  maxTokens: { fits: (value) => Number.isInteger(value) && Number(value) > 0, wanted: "an integer ≥ 1" },
  timeoutMs: { fits: (value) => number.fits(value) && Number(value) > 0, wanted: "a number of milliseconds > 0" },
  via: oneOf("cache", "text"),
});

const defaultMaxTokens = 4_096;
const defaultTimeoutMs = 60_000;

/** The share of the window that a text to summarise may take. */
const textShare = 0.6;
/** A window that no one knows, in tokens. */
const unknownWindow = 100_000;

/** A strategy that asks a model for a summary. */
export function summary(options: SummaryOptions = {}): CompactionStrategy {
  checkOptions("The options of summary", options, optionChecks);
  const { timeoutMs = defaultTimeoutMs } = options;
  return { name: "summary", timeoutMs, needsModel: true, compact: (input) => summarise(input, options) };
}

async function summarise(input: StrategyInput, options: SummaryOptions): Promise<StrategyOutput> {
  const { asker, messages } = input;
  if (!asker) {
    const sentence = "summary() needs a model: compact through an agent, or choose a strategy without one.";
    throw new BoughError("invalid_argument", sentence);
  }
  const model = options.model === undefined ? asker.model : await asker.find(options.model);
  const writer = new Writer(asker, model, options);
  const said = await writer.write(input);
  checkSummary(said);
  return {
    replacements: [summaryMessage(said.trim(), messages)],
    model: `${model.provider}/${model.modelId}`,
    usage: writer.usage,
  };
}

class Writer {
  usage: Usage = {};
  readonly #asker: StrategyModel;
  readonly #model: LanguageModel;
  readonly #options: SummaryOptions;

  constructor(asker: StrategyModel, model: LanguageModel, options: SummaryOptions) {
    this.#asker = asker;
    this.#model = model;
    this.#options = options;
  }

  async write(input: StrategyInput): Promise<string> {
    const ridesCache = this.#options.via !== "text" && this.#model === this.#asker.model && !this.#asker.isOverfull;
    const said = ridesCache ? await this.#overCache(input) : undefined;
    return said ?? (await this.#overText(input));
  }

  /** Summary-1. Undefined when the model did not answer with a text (Summary-2). */
  async #overCache(input: StrategyInput): Promise<string | undefined> {
    // The output's schema would make the summary JSON; no provider has it in the cached prefix.
    const { responseSchema: _, ...next } = this.#asker.request();
    const instructions = next.prompt.findIndex(({ role }) => role !== "system");
    const after = Math.max(0, next.prompt.length - Math.max(0, instructions) - input.messages.length);
    const request: ModelRequest = {
      ...next,
      reminders: [this.#prompt(input, after)],
      settings: { ...next.settings, maxOutputTokens: this.#maxTokens },
    };
    const reply = await this.#ask(request).catch(unlessOverflow);
    return reply && !(reply.hasCalls && reply.text.trim() === "") ? reply.text : undefined;
  }

  async #overText(input: StrategyInput): Promise<string> {
    const { window = contextWindow(this.#model) ?? unknownWindow } =
      this.#model === this.#asker.model ? this.#asker : {};
    const most = Math.floor((textShare * window) / tokenRatios.of(this.#model));
    const reply =
      (await this.#ask(this.#textRequest(input, most)).catch(unlessOverflow)) ??
      (await this.#ask(this.#textRequest(input, Math.floor(most / 2))));
    return reply.text;
  }

  #textRequest(input: StrategyInput, most: number): ModelRequest {
    const { settings } = this.#asker.request();
    const own = this.#model === this.#asker.model && settings.providerOptions;
    const conversation = `<conversation>\n${toPlainText(input.messages, most)}\n</conversation>`;
    return {
      model: this.#model,
      prompt: [{ role: "user", content: [{ type: "text", text: `${conversation}\n\n${this.#prompt(input, 0)}` }] }],
      tools: [],
      settings: {
        maxOutputTokens: this.#maxTokens,
        ...(this.#model === this.#asker.model && settings.headers && { headers: settings.headers }),
        ...(own && { providerOptions: own }),
      },
    };
  }

  #prompt({ messages, instructions }: StrategyInput, after: number): string {
    return summaryPrompt({ messages, prompt: this.#options.prompt, instructions, after });
  }

  get #maxTokens(): number {
    return this.#options.maxTokens ?? defaultMaxTokens;
  }

  async #ask(request: ModelRequest): Promise<StrategyReply> {
    const reply = await this.#asker.ask(request);
    this.usage = addUsage(this.usage, reply.usage);
    return reply;
  }
}

function unlessOverflow(error: unknown): undefined {
  if (!BoughError.is(error, "context_overflow")) throw error;
}

/** Summary-3. */
function checkSummary(said: string): void {
  if (said.trim() === "") throw new BoughError("model_failed", "The summary was empty.");
  if (isLooping(said)) throw new BoughError("model_failed", "The summary repeats itself.");
}

/** How many words in a row are compared, and from how many words on a text is looked at. */
const [phraseWords, fewestWords] = [6, 120];
/** Of a text that goes round in circles, fewer of its phrases than this are different ones. */
const leastDistinct = 0.4;

function isLooping(said: string): boolean {
  const words = said.split(/\s+/);
  if (words.length < fewestWords) return false;
  const phrases = words.slice(phraseWords - 1).map((_, i) => words.slice(i, i + phraseWords).join(" "));
  return new Set(phrases).size < leastDistinct * phrases.length;
}
