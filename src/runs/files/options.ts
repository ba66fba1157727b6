// How files are sent to models.

import { BoughError } from "../../base/errors.ts";
import { checkOptions, number, object, optionTable, texts } from "../../base/options.ts";

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
}

/** The same with the defaults filled in. */
export interface FilePlan {
  readonly inline: { readonly perFile: number; readonly perCall: number };
  readonly accepts?: readonly string[];
  readonly textLength: number;
}

const optionsTable = optionTable<ContentOptions>({ inline: object, accepts: texts, textLength: number });
const bytes = {
  fits: (value: unknown) => typeof value === "number" && value >= 0,
  wanted: "a number of bytes",
};
const inlineTable = optionTable<NonNullable<ContentOptions["inline"]>>({ perFile: bytes, perCall: bytes });

const megabyte = 1_000_000;

export function planFiles(options: ContentOptions = {}): FilePlan {
  checkOptions("The option content", options, optionsTable, "content.");
  const { inline = {}, accepts, textLength = 80_000 } = options;
  checkOptions("The option content.inline", inline, inlineTable, "content.inline.");
  if (accepts?.some((type) => !/^[^/]+(\/[^/]+)?$/.test(type))) {
    throw new BoughError("invalid_argument", 'content.accepts must be media types, such as "image/*".');
  }
  return {
    inline: { perFile: inline.perFile ?? 5 * megabyte, perCall: inline.perCall ?? 15 * megabyte },
    textLength,
    ...(accepts && { accepts }),
  };
}
