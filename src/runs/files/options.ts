// How files are sent to models.

import { BoughError } from "../../base/errors.ts";
import type { JsonObject } from "../../base/json.ts";
import { checkOptions, isObject, number, object, optionTable, texts } from "../../base/options.ts";
import type { FetchRules } from "../../content/index.ts";

/** A provider's own store of files: the `files()` of an AI SDK provider. */
export interface ProviderFiles {
  readonly provider: string;
  // biome-ignore lint/suspicious/noExplicitAny: providers name the data's types in their own way
  uploadFile(options: any): PromiseLike<{
    readonly providerReference: Readonly<Record<string, string>>;
    readonly expiresAt?: Date | undefined;
  }>;
}

/** How an agent sends files to its models. */
export interface ContentOptions {
  /** How many bytes of files are sent inside a request: of one file (default 5 MB), and of all together (default 15 MB). */
  readonly inline?: { readonly perFile?: number; readonly perCall?: number };
  /**
   * The media types that the model takes from a user (`["image/*", "application/pdf"]`). By default what is known of its
   * provider's package. Other files are sent as text, where they have any.
   */
  readonly accepts?: readonly string[];
  /** How many characters of a file's text are sent (default 80,000, about 20,000 tokens); `readFileTool()` reads the rest. */
  readonly textLength?: number;
  /**
   * Where files are uploaded once instead of being sent with every call: `openai.files()`. Each is used for the models of its
   * provider.
   */
  readonly files?: ProviderFiles | readonly ProviderFiles[];
  /** Given to `uploadFile` as `providerOptions`: `{ openai: { expiresAfter: 86_400 } }`. */
  readonly uploadOptions?: JsonObject;
  /** Which web addresses in messages are fetched and stored (default: none; a provider may open them). */
  readonly fetchUrls?: FetchRules;
}

/** The same with the defaults filled in. */
export interface FilePlan {
  readonly inline: { readonly perFile: number; readonly perCall: number };
  readonly accepts?: readonly string[];
  readonly textLength: number;
  readonly services: readonly ProviderFiles[];
  readonly uploadOptions?: JsonObject;
  readonly fetchUrls?: FetchRules;
}

const isService = (value: unknown) => isObject(value) && typeof value.uploadFile === "function";

const optionsTable = optionTable<ContentOptions>({
  ...{ inline: object, accepts: texts, textLength: number, uploadOptions: object, fetchUrls: object },
  files: {
    fits: (value) => (Array.isArray(value) ? value.every(isService) : isService(value)),
    wanted: "the files() of an AI SDK provider, or a list of them",
  },
});
const bytes = {
  fits: (value: unknown) => typeof value === "number" && value >= 0,
  wanted: "a number of bytes",
};
const inlineTable = optionTable<NonNullable<ContentOptions["inline"]>>({ perFile: bytes, perCall: bytes });

const isHost = (host: string) => host === "*" || /^(\*\.)?([a-z0-9-]+\.)+[a-z0-9-]+$/.test(host);
const rulesTable = optionTable<FetchRules>({
  hosts: {
    fits: (value) => Array.isArray(value) && value.every((host) => typeof host === "string" && isHost(host)),
    wanted: 'a list of names in small letters, such as "example.com", "*.example.com" or "*"',
  },
  maxBytes: bytes,
  timeoutMs: number,
});

function checkRules(rules: FetchRules): FetchRules {
  checkOptions("The option content.fetchUrls", rules, rulesTable, "content.fetchUrls.");
  if (!rules.hosts) throw new BoughError("invalid_argument", "content.fetchUrls needs hosts.");
  return rules;
}

const megabyte = 1_000_000;

export function planFiles(options: ContentOptions = {}): FilePlan {
  checkOptions("The option content", options, optionsTable, "content.");
  const { inline = {}, accepts, textLength = 80_000, files = [], uploadOptions, fetchUrls } = options;
  checkOptions("The option content.inline", inline, inlineTable, "content.inline.");
  if (accepts?.some((type) => !/^[^/]+(\/[^/]+)?$/.test(type))) {
    throw new BoughError("invalid_argument", 'content.accepts must be media types, such as "image/*".');
  }
  return {
    inline: { perFile: inline.perFile ?? 5 * megabyte, perCall: inline.perCall ?? 15 * megabyte },
    textLength,
    services: Array.isArray(files) ? files : [files as ProviderFiles],
    ...(uploadOptions && { uploadOptions }),
    ...(fetchUrls && { fetchUrls: checkRules(fetchUrls) }),
    ...(accepts && { accepts }),
  };
}
