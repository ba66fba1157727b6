// Compactions by hand as JSON: the request and the description, the same for local and remote branches.

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
  /** Who sees the replacement: models only (`"soft"`, the default unless the agent has another), or people too (`"hard"`). */
  readonly retention?: "soft" | "hard";
  /** Instructions for the strategy. */
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
  /** How many compactions and clearings are in force. */
  readonly compactions: number;
  /** From how many tokens on runs compact by themselves; absent when no size makes them. */
  readonly nextAt?: number;
  /** How often automatic compaction failed in a row. Open: it is not tried until one by hand succeeds or the model changes. */
  readonly breaker: { readonly failures: number; readonly isOpen: boolean };
}

/** A compaction of a branch, or a clearing: tool outputs that a run shows to models as a note (`cleared`). */
export interface CompactionInfo {
  readonly id: string;
  readonly createdAt: number;
  readonly retention: "soft" | "hard";
  /** The first and the last message that it covers. */
  readonly first: string;
  readonly last: string;
  /** How many messages it covers, and how many of them stay verbatim; of a clearing, those that have the outputs. */
  readonly messages: number;
  readonly kept: number;
  /** The ids of the messages that are shown instead. */
  readonly replacements: readonly string[];
  /** How many tool outputs are shown as a note; present on a clearing only. */
  readonly cleared?: number;
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

/** What to ask about a compaction. */
export interface CompactionCheckRequest {
  /** The compaction (default: the newest in force). */
  readonly compactionId?: string;
  /** What to ask; by default the model proposes questions about what was compacted. */
  readonly questions?: readonly string[];
  /** How many questions the model proposes (default 5). */
  readonly count?: number;
}

/** One question, answered on the branch as it is and as it was before the compaction. */
export interface CheckedAnswer {
  readonly question: string;
  /** The answer with the compaction, and without it. */
  readonly compacted: string;
  readonly original: string;
  /** From 0 (what the original answer says is lost) to 1; absent when the original prompt is too long for the model. */
  readonly score?: number;
}

/** What a compaction lost, as far as the questions tell. */
export interface CompactionCheck {
  readonly compactionId: string;
  readonly answers: readonly CheckedAnswer[];
  /** The mean of the scores; absent when there is none. */
  readonly score?: number;
  /** The tokens that the check used. */
  readonly usage: JsonObject;
}
