// What stands between a compaction's three parts: choosing a range (range.ts), making something shorter of it (a strategy), and
// writing the fact (apply.ts). Commands and runs share all three; only a run, or an agent, has a model to ask.

import type { Message, NewMessage } from "../../events/index.ts";
import type { LanguageModel, ModelChoice, ModelRequest, Usage } from "../../models/index.ts";

/** Positions of the ledger that a compaction replaces, aligned: no call stands apart from its results. */
export interface CompactionRange {
  /** Replaced are the positions from … to-1. */
  readonly from: number;
  readonly to: number;
  /** Positions inside that stay verbatim: pins, system messages, the input of the open turn. */
  readonly keep: readonly number[];
  /** The open turn, when the range reaches into it. */
  readonly turnId?: string;
}

/** Asks a model on behalf of a strategy. */
export interface StrategyModel {
  /** The model of the conversation. */
  readonly model: LanguageModel;
  /** The model's context window in tokens, if known. */
  readonly window?: number;
  /** Whether the provider has refused the next call as too long: a request that holds it all would be refused as well. */
  readonly isOverfull?: boolean;
  /** Another model: by the agent's name for it, by the provider's, or as it is. */
  find(choice: ModelChoice): Promise<LanguageModel>;
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

/** The input of a strategy: a range of a conversation. */
export interface StrategyInput {
  /** The range as a model sees it, in order, including an earlier compaction's replacements. */
  readonly messages: readonly Message[];
  /** Those of them that stay verbatim. */
  readonly kept: readonly Message[];
  /** The caller's instructions for the strategy. */
  readonly instructions?: string;
  readonly signal: AbortSignal;
  /** Absent without an agent. */
  readonly asker?: StrategyModel;
}

/** The output of a strategy. */
export interface StrategyOutput {
  /** Shown in place of the range; an empty list drops it. */
  readonly replacements: readonly NewMessage[];
  /** The ids of further messages of the range that stay verbatim. */
  readonly keep?: readonly string[];
  /** The model that made the replacements, and what it used. */
  readonly model?: string;
  readonly usage?: Usage;
}

/** Shortens a range of messages. */
export interface CompactionStrategy {
  /** Stored with the compaction. */
  readonly name: string;
  /** How many of the newest turns stay as they are, by default. */
  readonly keepTurns?: number;
  /** How long it may take (default 60 s); its signal aborts then. */
  readonly timeoutMs?: number;
  /** It asks a model, so it needs an agent. */
  readonly needsModel?: true;
  compact(input: StrategyInput): Promise<StrategyOutput>;
}
