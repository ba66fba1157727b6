/** How much content may be stored. */
export interface ContentLimits {
  /** The largest file in bytes (default 100 MB). */
  readonly fileBytes: number;
  /** The content of a session, equal bytes counted once (default: no limit). */
  readonly sessionBytes: number;
}

export const defaultContentLimits: ContentLimits = {
  fileBytes: 100 * 1024 * 1024,
  sessionBytes: Number.POSITIVE_INFINITY,
};
