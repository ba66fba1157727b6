// Compacting by hand: a range is decided on a view, a strategy works on it while nothing is held, and the fact is appended if
// the branch still is what was decided on.
//
//   Compact-1. Nothing is written until the strategy has answered; the append of the fact is the compaction.
//   Compact-2. No claim is held while the strategy works: runs and other commands go on.
//   Compact-3. What was decided on one view is written only where the positions, the ids and the compactions in force are the
//              same; else it is decided again, twice at most.

import { BoughError } from "../../base/errors.ts";
import { anything, checkOptions, isObject, type OptionCheck, oneOf, optionTable, text } from "../../base/options.ts";
import type { Draft, Fact, Message } from "../../events/index.ts";
import { type BranchRef, refuse } from "../../log/index.ts";
import type { BranchView } from "../../projection/index.ts";
import type { CompactionInfo, CompactRequest, Keep } from "../../wire/index.ts";
import { resolveBranch } from "../branches.ts";
import { findHolder, whileFree } from "../claims.ts";
import type { Context, Scope } from "../context.ts";
import { draftCompaction, messagesOf } from "./apply.ts";
import { rangeBetween } from "./boundaries.ts";
import { describeFact } from "./list.ts";
import type { CompactionRange, CompactionStrategy, StrategyInput, StrategyModel, StrategyOutput } from "./port.ts";
import { at, chooseRange, findPosition, isSameRange, rangeOf, survey } from "./range.ts";
import { estimateTokens } from "./size.ts";
import { type CompactionFunction, defaultStrategy, toStrategy } from "./strategies.ts";
import { runStrategy } from "./strategy-run.ts";

/** What to compact and how, in this process. */
export interface CompactOptions extends CompactRequest {
  /** Shortens the range (default: the agent's strategy; without an agent, `keepTurns(10)`). */
  readonly strategy?: CompactionStrategy | CompactionFunction;
  /** Stops the strategy. */
  readonly signal?: AbortSignal;
}

/** Compactions of a fork: the source's, none, or always one of its own. */
export type OnFork = "inherit" | "none" | "always";

/** What an agent adds to compactions by hand. */
export interface Compactor {
  /** Used where the caller gives none. */
  readonly strategy?: CompactionStrategy;
  /** What stays where neither the caller nor the caller's strategy says. */
  readonly keep?: Keep;
  /** Who sees the difference where the caller doesn't say (default: models only). */
  readonly retention?: "soft" | "hard";
  /** The default compaction of forks (default "inherit"). */
  readonly onFork?: OnFork;
  /** The model that strategies may ask about this branch. */
  readonly asker?: (ref: BranchRef, view: BranchView) => Promise<(signal: AbortSignal) => StrategyModel>;
  readonly sizeOf?: (message: Message) => number;
}

const isCount = (value: unknown) => Number.isInteger(value) && (value as number) >= 0;
const counts: OptionCheck = { fits: (value) => value === undefined || isCount(value), wanted: "an integer ≥ 0" };
const keepKeys = optionTable<NonNullable<CompactRequest["keep"]>>({ turns: counts, tokens: counts });
const rangeKeys = optionTable<NonNullable<CompactRequest["range"]>>({
  ...{ from: text, to: text, previous: counts, whole: oneOf("calls", "turns") },
});
const compactKeys = optionTable<CompactOptions>({
  ...{ keep: anything, before: text, range: anything, strategy: anything, signal: anything, instructions: text },
  retention: oneOf("soft", "hard"),
});

/** How often a range is decided before it is given up. */
const attempts = 3;
/** What stays where no agent says otherwise. */
const defaultKeep = { turns: 5, tokens: 20_000 };

export function checkCompactOptions(options: CompactOptions, whose = "The options of compact"): void {
  checkOptions(whose, options, compactKeys);
  const { keep, before, range } = options;
  if (keep !== undefined) checkOptions("keep", keep, keepKeys, "keep.");
  if (range !== undefined) checkOptions("range", range, rangeKeys, "range.");
  if (range !== undefined && (!isObject(range) || range.from === undefined))
    throw invalid("range.from must be a string.");
  if ([keep, before, range].filter((each) => each !== undefined).length > 1) {
    throw invalid("Give only one of keep, before and range.");
  }
}

export async function compact(
  context: Context,
  scope: Scope,
  options: CompactOptions = {},
  compactor: Compactor = {},
): Promise<CompactionInfo> {
  checkCompactOptions(options);
  const ref = await resolveBranch(context, scope);
  const { retention = compactor.retention ?? "soft" } = options;
  const strategy = strategyOf(options, compactor);
  for (let attempt = 0; attempt < attempts; attempt++) {
    const holder = await findHolder(context, ref);
    if (holder) throw refuse.runActive(holder);
    const { view } = await context.views.load(ref);
    const inputs = await inputsOf(context, ref, view);
    const range = decideRange(view, { ...options, retention, inputs, strategy, compactor });
    if (!range) throw nothingToCompact(ref);
    const decided = remember(view, range);
    const output = await askStrategy(strategy, {
      ...{ context, ref, view, range, retention, options, compactor },
    });
    const written = await whileFree(context, ref, (now): Draft[] => {
      const same = stillThere(now, decided, { retention, inputs });
      if (!same) return [];
      return [draftCompaction(context, now, same, output, { retention, reason: "manual", strategy: strategy.name })];
    });
    if (written) return describeFact(written.facts[0] as Fact<"history.compacted">, true);
  }
  const sentence = `Branch "${ref.branchId}" changed each time while "${strategy.name}" worked on it: nothing was compacted.`;
  throw new BoughError("sequence_conflict", sentence, { data: { ...ref }, retryable: true });
}

/** The strategy of a call. Refuses one that needs a model where there is none. */
export function strategyOf({ strategy }: CompactOptions, compactor: Compactor): CompactionStrategy {
  const chosen = toStrategy(strategy ?? compactor.strategy ?? defaultStrategy);
  if (chosen.needsModel && !compactor.asker) {
    const sentence = `The strategy "${chosen.name}" asks a model: compact through an agent, or use keepTurns or a function.`;
    throw invalid(sentence);
  }
  return chosen;
}

/** What decides a range. */
export interface Deciding extends CompactRequest {
  readonly strategy: CompactionStrategy;
  readonly compactor: Compactor;
  readonly inputs?: ReadonlySet<string>;
}

/** The range that a request means; undefined when it has nothing to compact. */
export function decideRange(view: BranchView, deciding: Deciding): CompactionRange | undefined {
  const { keep, before, range, retention = "soft", inputs, strategy, compactor } = deciding;
  const options = { retention, ...(inputs && { inputs }) };
  if (range) return rangeBetween(view, range, options);
  const { sizeOf = estimateTokens } = compactor;
  if (before !== undefined) {
    const ground = survey(view, options);
    const isThere = findPosition(ground, ({ id, turnId }) => id === before || turnId === before) !== undefined;
    if (!isThere) throw notThere(before);
    return chooseRange(view, { ...options, keep: {}, before, sizeOf });
  }
  const { keep: own = defaultKeep } = compactor;
  const byStrategy = strategy.keepTurns === undefined ? own : { turns: strategy.keepTurns };
  return chooseRange(view, { ...options, keep: keep ?? byStrategy, sizeOf });
}

interface Asked {
  readonly context: Pick<Context, "clock">;
  readonly ref: BranchRef;
  readonly view: BranchView;
  readonly range: CompactionRange;
  readonly retention: "soft" | "hard";
  readonly options: Pick<CompactOptions, "instructions" | "signal">;
  readonly compactor: Compactor;
}

/** Gives the strategy what is seen of the range, and checks what it returns. */
export async function askStrategy(strategy: CompactionStrategy, asked: Asked): Promise<StrategyOutput> {
  const { context, ref, view, range, retention, compactor } = asked;
  const { instructions, signal = new AbortController().signal } = asked.options;
  // Before anything is waited for: the view goes on.
  const seen = messagesOf(view, range, retention);
  const askerFor = compactor.asker && (await compactor.asker(ref, view));
  const inputFor = (own: AbortSignal): StrategyInput => ({
    ...{ ...seen, signal: own },
    ...(instructions !== undefined && { instructions }),
    ...(askerFor && { asker: askerFor(own) }),
  });
  return runStrategy(strategy, inputFor, { clock: context.clock, signal }).catch((error) => {
    throw signal.aborted ? new BoughError("aborted", "The compaction was aborted.", { cause: error }) : error;
  });
}

/** What has to be the same when the fact is written (Compact-3). */
interface Decided {
  readonly range: CompactionRange;
  readonly lastId: string;
  readonly inForce: string;
}

function remember(view: BranchView, range: CompactionRange): Decided {
  return { range, lastId: at(survey(view, {}), range.to - 1).id, inForce: inForceOf(view) };
}

/** The ids and the facts that put them in force. */
function inForceOf({ overlays, cleared }: BranchView): string {
  return JSON.stringify([overlays.map(({ id, since }) => [id, since]), cleared.map(({ seq, at }) => [seq, at])]);
}

/** The range as it is on the newest view; undefined when something of it is different. */
function stillThere(
  view: BranchView,
  { range, lastId, inForce }: Decided,
  options: { retention: "soft" | "hard"; inputs: ReadonlySet<string> },
): CompactionRange | undefined {
  const ground = survey(view, options);
  const { from, to } = range;
  if (inForceOf(view) !== inForce || to > Math.max(ground.end, ground.count)) return undefined;
  // Ids are never used again: where the last one is, all those before it are.
  if (at(ground, to - 1).id !== lastId) return undefined;
  const now = rangeOf(ground, from, to);
  return isSameRange(now, range) ? now : undefined;
}

/** The ids of the open turn's input, which its facts tell. */
async function inputsOf(context: Context, ref: BranchRef, view: BranchView): Promise<Set<string>> {
  const { open, seq } = view;
  const inputs = new Set<string>();
  if (!open || view.staged.length > 0) return inputs;
  for await (const { facts } of context.journal.pieces(ref, { after: open.from - 1, before: seq + 1 })) {
    for (const fact of facts) if (fact.type === "message.added" && fact.source) inputs.add(fact.id);
  }
  // The view goes on: another turn may be the open one now.
  return view.open?.id === open.id ? inputs : inputsOf(context, ref, view);
}

function nothingToCompact({ branchId, sessionId }: BranchRef): BoughError {
  const sentence = `Branch "${branchId}" has nothing to compact: what is older than what stays is compacted already, or there is nothing older.`;
  return new BoughError("nothing_to_compact", sentence, { data: { sessionId, branchId } });
}

function notThere(messageId: string): BoughError {
  return new BoughError("message_not_on_branch", `The branch has no message and no turn "${messageId}".`, {
    data: { messageId },
  });
}

function invalid(sentence: string): BoughError {
  return new BoughError("invalid_argument", sentence);
}
