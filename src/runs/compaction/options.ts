// When a run shortens what its model sees, and how: the options of agents and runs, their defaults, and how both are combined.

import { BoughError } from "../../base/errors.ts";
import {
  checkOptions,
  flag,
  isObject,
  number,
  type OptionCheck,
  type OptionChecks,
  object,
  oneOf,
  optionTable,
  texts,
} from "../../base/options.ts";
import type { LanguageModel } from "../../models/index.ts";
import { contextWindow } from "../../models/windows.ts";
import type { OnFork } from "../../sessions/compaction/compact.ts";
import type { CompactionStrategy } from "../../sessions/compaction/port.ts";
import { type CompactionFunction, toStrategy } from "../../sessions/compaction/strategies.ts";
import { summary } from "./summary.ts";

type Named = Pick<LanguageModel, "provider" | "modelId">;

/** When and how a run compacts automatically. */
export interface CompactionOptions {
  /** The model's context window in tokens, or a function of the model (default: what is known about the model). */
  readonly window?: number | ((model: Named) => number | undefined);
  /** Compacts at this share of the window (default 0.8). */
  readonly at?: number;
  /** The same when the provider's cache has gone cold, so that a new prefix costs nothing extra (default 0.5, at most `at`). */
  readonly coldAt?: number;
  /** How long a provider's cache stays warm after a call (default 300,000). */
  readonly cacheMs?: number;
  /** The share of the window to reach by clearing (default 0.5, less for a lower `at`). */
  readonly target?: number;
  /**
   * How much of the newest part stays as it is: at most so many turns (default 5, or half of `turns`) and tokens (default 20,000),
   * and never more than half of `target` or of `messages`.
   */
  readonly keep?: { readonly turns?: number; readonly tokens?: number };
  /** Compacts also from so many tokens on, or from so many turns or messages on that no compaction has dealt with. */
  readonly tokens?: number;
  readonly turns?: number;
  readonly messages?: number;
  /**
   * Whether outputs of old calls are cleared where that alone suffices: never those of the newest `batches` (default 3), of tools
   * named in `except` or of tools with `retain`, and only if it saves `gain` tokens (default 20,000).
   */
  readonly clear?: false | ClearOptions;
  /** Shortens a range of messages (default `summary()`). */
  readonly strategy?: CompactionStrategy | CompactionFunction;
  /** Whether only models see the difference (default "soft"), or people too; also the default of compactions by hand. */
  readonly retention?: "soft" | "hard";
  /**
   * The default compactions of forks: the source's ("inherit", the default), none, so that they show the original messages
   * ("none"), or their own hard compaction by `strategy` ("always").
   */
  readonly onFork?: OnFork;
}

/** Which outputs of old calls are cleared. */
export interface ClearOptions {
  readonly batches?: number;
  readonly gain?: number;
  readonly except?: readonly string[];
}

/** Compaction of one run: "off" (also after an overflow), "force" (before its first call in any case), or options. */
export type RunCompaction = "off" | "force" | RunCompactionOptions;

/** How one run compacts. */
export interface RunCompactionOptions extends Omit<CompactionOptions, "onFork"> {
  /** Compacts before the run's first model call in any case. */
  readonly force?: boolean;
  /** Ends the turn after a compaction, before the model is called. */
  readonly stopAfter?: boolean;
}

/** What a run does. */
export interface CompactionPlan
  extends Required<Pick<CompactionOptions, "at" | "coldAt" | "cacheMs" | "target" | "retention" | "onFork">>,
    Pick<CompactionOptions, "window" | "tokens" | "turns" | "messages"> {
  /** Whether it compacts before a call when a bound is reached. */
  readonly isProactive: boolean;
  /** Whether it compacts and calls again when the provider says that the prompt is too long. */
  readonly recovers: boolean;
  readonly isForced: boolean;
  readonly stopsAfter: boolean;
  readonly keep: { readonly turns: number; readonly tokens: number };
  readonly clear: false | Required<ClearOptions>;
  readonly strategy: CompactionStrategy;
}

const defaultClear = { batches: 3, gain: 20_000, except: [] };
const [defaultTurns, defaultTokens] = [5, 20_000];
const unbounded = Number.POSITIVE_INFINITY;

/** What an agent's runs do unless one of them says otherwise. */
export function planCompaction(choice: boolean | CompactionOptions | undefined): CompactionPlan {
  const options = isObject(choice) ? (choice as CompactionOptions) : {};
  return resolve(options, { isProactive: choice === true || isObject(choice), recovers: choice !== false });
}

/** The same for one run. */
export function planRunCompaction(
  agent: CompactionPlan,
  agentChoice: boolean | CompactionOptions | undefined,
  run: RunCompaction | undefined,
): CompactionPlan {
  if (run === undefined) return agent;
  if (run === "off") return { ...agent, isProactive: false, recovers: false };
  if (run === "force") return { ...agent, isForced: true };
  const { force = false, stopAfter = false, ...own } = run;
  const options = { ...(isObject(agentChoice) ? agentChoice : {}), ...own };
  // A run that only wants to stop after what the agent does anyway says nothing about when.
  const isProactive = agent.isProactive || Object.values(own).some((value) => value !== undefined);
  return { ...resolve(options, { isProactive, recovers: true }), isForced: force, stopsAfter: stopAfter };
}

function resolve(options: CompactionOptions, when: Pick<CompactionPlan, "isProactive" | "recovers">): CompactionPlan {
  const { at = 0.8, cacheMs = 300_000, keep = {} } = options;
  const strategy = toStrategy(options.strategy ?? summary());
  const { coldAt = Math.min(0.5, at), target = Math.min(0.5, 0.625 * at) } = options;
  const { retention = "soft", onFork = "inherit", clear = {}, window, tokens, turns, messages } = options;
  if (coldAt > at) throw badOption("compaction.coldAt must not be larger than compaction.at.");
  if (target >= at) throw badOption("compaction.target must be smaller than compaction.at.");
  const mostTurns = turns === undefined ? defaultTurns : Math.min(defaultTurns, Math.floor(turns / 2));
  const keptTurns = keep.turns ?? strategy.keepTurns ?? mostTurns;
  if (turns !== undefined && turns <= keptTurns) {
    throw badOption(
      `compaction.turns must be larger than the ${keptTurns} turns that are kept (compaction.keep.turns).`,
    );
  }
  return {
    ...when,
    ...{ at, coldAt, cacheMs, target, strategy, retention, onFork },
    isForced: false,
    stopsAfter: false,
    // A strategy that names its turns means them, however long they are.
    keep: { turns: keptTurns, tokens: keep.tokens ?? (strategy.keepTurns === undefined ? defaultTokens : unbounded) },
    clear: clear !== false && { ...defaultClear, ...clear },
    ...(window !== undefined && { window }),
    ...(tokens !== undefined && { tokens }),
    ...(turns !== undefined && { turns }),
    ...(messages !== undefined && { messages }),
  };
}

/** The context window that a run reckons with; undefined when neither the options nor the model's family tell. */
export function windowOf({ window }: Pick<CompactionPlan, "window">, model: Named): number | undefined {
  const said = typeof window === "function" ? window(model) : window;
  return said ?? contextWindow(model);
}

const share: OptionCheck = {
  fits: (value) => number.fits(value) && Number(value) > 0 && Number(value) <= 1,
  wanted: "a share > 0 and ≤ 1",
};
const count: OptionCheck = { fits: (value) => Number.isInteger(value) && Number(value) >= 1, wanted: "an integer ≥ 1" };
const amount: OptionCheck = {
  fits: (value) => Number.isInteger(value) && Number(value) >= 0,
  wanted: "an integer ≥ 0",
};
const period: OptionCheck = {
  fits: (value) => typeof value === "number" && value >= 0,
  wanted: "a number of milliseconds",
};

const compaction: OptionChecks<Omit<CompactionOptions, "onFork">> = {
  window: {
    fits: (value) => count.fits(value) || typeof value === "function",
    wanted: "a number of tokens or a function of the model",
  },
  at: share,
  coldAt: share,
  cacheMs: period,
  target: share,
  keep: object,
  tokens: count,
  turns: count,
  messages: count,
  clear: { fits: (value) => value === false || isObject(value), wanted: "false or an object" },
  strategy: {
    fits: (value) => typeof value === "function" || (isObject(value) && typeof value.compact === "function"),
    wanted: "a strategy, such as summary() or keepTurns(20), or a function",
  },
  retention: oneOf("soft", "hard"),
};
const compactionTable = optionTable<CompactionOptions>({
  ...compaction,
  onFork: oneOf("inherit", "none", "always"),
});
const runTable = optionTable<RunCompactionOptions>({ ...compaction, force: flag, stopAfter: flag });
const keepTable = optionTable<NonNullable<CompactionOptions["keep"]>>({ turns: amount, tokens: amount });
const clearTable = optionTable<ClearOptions>({ batches: amount, gain: amount, except: texts });

/** The option `compaction` of an agent. */
export const agentCompaction: OptionCheck = {
  fits: (value) => typeof value === "boolean" || isObject(value),
  wanted: "true, false or an object",
};

/** The option `compaction` of a run. */
export const runCompaction: OptionCheck = {
  fits: (value) => value === "off" || value === "force" || isObject(value),
  wanted: '"off", "force" or an object',
};

/** Refuses what an agent's or a run's `compaction` can't say (`invalid_argument`). */
export function checkCompaction(whose: string, given: unknown, where: "compaction." | "config.compaction."): void {
  if (!isObject(given)) return;
  checkOptions(whose, given, where === "compaction." ? compactionTable : runTable, where);
  const { keep, clear } = given as CompactionOptions;
  if (keep) checkOptions(whose, keep, keepTable, `${where}keep.`);
  if (clear) checkOptions(whose, clear, clearTable, `${where}clear.`);
}

function badOption(sentence: string): BoughError {
  return new BoughError("invalid_argument", sentence);
}
