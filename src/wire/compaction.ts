// Compactions by hand, as JSON can ask for them and as they are told of: the same near and far.

import type { JsonObject } from "../base/json.ts";

/** How much of the newest part of a conversation stays as it is; what is not given does not limit it. */
export interface Keep {
  /** The newest turns, the open one included. */
  readonly turns?: number;
  /** Of those, as many as have this size together; of a single turn that is larger, its newest part. */
  readonly tokens?: number;
}

/** Messages by id, both ends included, and how far the range is widened from there. */
export interface MessageRange {
  readonly from: string;
  /** Default: `from`. */
  readonly to?: string;
  /** This many messages before `from`, too. */
  readonly previous?: number;
  /**
   * Widens the range to whole batches (calls with their results) or to whole turns. Without it, a range that cuts calls from
   * their results is refused.
   */
  readonly whole?: "calls" | "turns";
}

/** What to compact and how. At most one of `keep`, `before` and `range`; by default, what the strategy keeps stays. */
export interface CompactRequest {
  /** Compacts what is older than this. */
  readonly keep?: Keep;
  /** Compacts everything before this message, or before this turn. */
  readonly before?: string;
  /** Compacts these messages. */
  readonly range?: MessageRange;
  /** Who sees the replacement: models only (`"soft"`, the default), or people too (`"hard"`). */
  readonly retention?: "soft" | "hard";
  /** What the strategy shall heed. */
  readonly instructions?: string;
}

/** How full a model's context is on a branch, and when it is compacted next. */
export interface ContextUsage {
  /** The size of the next prompt, without the input to come. */
  readonly tokens: number;
  /** Whether the provider has counted none of it. */
  readonly isEstimate: boolean;
  /** The model's context window, as far as it is known, and the share of it that is taken. */
  readonly window?: number;
  readonly share?: number;
  /** How many messages people see, and how many the model. */
  readonly messages: number;
  readonly visible: number;
  /** How many compactions are in force. */
  readonly compactions: number;
  /** From how many tokens on runs compact by themselves; absent when no size makes them. */
  readonly nextAt?: number;
  /** How often automatic compaction failed in a row. Open: it is not tried until one by hand succeeds or the model changes. */
  readonly breaker: { readonly failures: number; readonly isOpen: boolean };
}

/** A compaction of a branch. */
export interface CompactionInfo {
  readonly id: string;
  readonly createdAt: number;
  readonly retention: "soft" | "hard";
  /** The first and the last message that it covers. */
  readonly first: string;
  readonly last: string;
  /** How many messages it covers, and how many of them stay word for word. */
  readonly messages: number;
  readonly kept: number;
  /** The ids of the messages that are shown instead. */
  readonly replacements: readonly string[];
  /** False once a later compaction took its place, or once it was taken back. */
  readonly inForce: boolean;
  /** Why, by which strategy and with which model it was made; absent where a fork carries it without its fact. */
  readonly reason?: string;
  readonly strategy?: string;
  readonly model?: string;
  readonly usage?: JsonObject;
  /** Tokens of the prompt before and after. */
  readonly tokens?: { readonly before: number; readonly after: number };
}
