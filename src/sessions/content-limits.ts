import { checkOptions, optionTable } from "../base/options.ts";

/** How much content may be stored. */
export interface ContentLimits {
  /** The largest file in bytes (default 100 MB). */
  readonly fileBytes: number;
  /** The content of a session, equal bytes counted once (default: no limit). */
  readonly sessionBytes: number;
  /** The content of all sessions of the store, or of the tenant, as far as it is known (default: no limit). */
  readonly totalBytes: number;
}

const defaultContentLimits: ContentLimits = {
  fileBytes: 100 * 1024 * 1024,
  sessionBytes: Number.POSITIVE_INFINITY,
  totalBytes: Number.POSITIVE_INFINITY,
};

const bytes = { fits: (value: unknown) => typeof value === "number" && value >= 0, wanted: "a number of bytes" };
const limitsTable = optionTable<ContentLimits>({ fileBytes: bytes, sessionBytes: bytes, totalBytes: bytes });

/** The limits with what is left out taken from others. */
export function completeLimits(given: Partial<ContentLimits> = {}, others = defaultContentLimits): ContentLimits {
  checkOptions("The option contentLimits", given, limitsTable, "contentLimits.");
  return { ...others, ...given };
}
