// What stands between a compaction's three parts: choosing a range (range.ts), making something shorter of it (a strategy), and
// writing the fact (apply.ts). Commands and runs share all three; only a run, or an agent, has a model to ask.

import type { Message, NewMessage } from "../../events/index.ts";
import type { LanguageModel, ModelRequest, Usage } from "../../models/index.ts";

/** Positions of the ledger that a compaction replaces, aligned: no call stands apart from its results. */
export interface CompactionRange {
  /** Replaced are the positions from … to-1. */
  readonly from: number;
  readonly to: number;
  /** Positions inside that stay word for word: pins, system messages, the input of the open turn. */
  readonly keep: readonly number[];
  /** The open turn, when the range reaches into it. */
  readonly turnId?: string;
}

/** Asks a model on behalf of a strategy. */
export interface StrategyModel {
  /** The model of the conversation. */
  readonly model: LanguageModel;
  /** How many tokens that model takes, as far as it is known. */
  readonly window?: number;
  /** Whether the provider has refused the next call as too long: a request that holds it all would be refused as well. */
  readonly isOverfull?: boolean;
  /** What the next call of the conversation would send. */
  request(): ModelRequest;
  /** Makes one call and reads its answer to the end. */
  ask(request: ModelRequest): Promise<StrategyReply>;
}

/** A model's answer to a strategy. */
export interface StrategyReply {
  readonly text: string;
  /** Whether the model asked for tools. */
  readonly hasCalls: boolean;
  readonly usage: Usage;
}

/** What a strategy is given: a range of a conversation. */
export interface StrategyInput {
  /** What a model sees of the range, in order; an earlier compaction's replacements included. */
  readonly messages: readonly Message[];
  /** Those of them that stay word for word. */
  readonly kept: readonly Message[];
  /** What a caller wants the strategy to heed. */
  readonly instructions?: string;
  readonly signal: AbortSignal;
  /** Absent without an agent. */
  readonly asker?: StrategyModel;
}

/** What a strategy makes of a range. */
export interface StrategyOutput {
  /** Shown in place of the range; none drops it. */
  readonly replacements: readonly NewMessage[];
  /** Messages of the range that stay word for word, besides those that stay anyway, by id. */
  readonly keep?: readonly string[];
  /** The model that made the replacements, and what it used. */
  readonly model?: string;
  readonly usage?: Usage;
}

/** Makes something shorter of a range of messages. */
export interface CompactionStrategy {
  /** Stored with the compaction. */
  readonly name: string;
  /** How many of the newest turns the strategy wants to stay as they are, when the caller says nothing. */
  readonly keepTurns?: number;
  /** How long it may take (default 60 s); its signal aborts then. */
  readonly timeoutMs?: number;
  /** It asks a model, so it needs an agent. */
  readonly needsModel?: true;
  compact(input: StrategyInput): Promise<StrategyOutput>;
}
