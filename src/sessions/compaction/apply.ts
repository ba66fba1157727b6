// From a range to facts: what a strategy is given of it, and the drafts that write what the strategy made. Pure, like range.ts.

import { BoughError } from "../../base/errors.ts";
import { type DraftSource, historyCompacted } from "../../events/drafts.ts";
import type { Draft } from "../../events/index.ts";
import type { BranchView, Overlay } from "../../projection/index.ts";
import { covers, isHard, messageAt, outermost, seenIn, unclosedMessages } from "../../projection/overlay.ts";
import type { CompactionRange, StrategyInput, StrategyOutput } from "./port.ts";

/** What is stored with a compaction besides its range and what it shows. */
export interface CompactionRecord {
  readonly retention: "soft" | "hard";
  readonly reason: string;
  readonly strategy: string;
  /** Tokens of the prompt before and after. */
  readonly tokens?: { readonly before: number; readonly after: number };
}

/** What is seen of a range, and which of it stays. */
export function messagesOf(
  view: BranchView,
  range: CompactionRange,
  retention: "soft" | "hard" = "soft",
): Pick<StrategyInput, "messages" | "kept"> {
  // Where a soft compaction covers all of it, models see nothing of a hard one.
  const isCovered = view.overlays.some((each) => !isHard(each) && covers(each, range) && !covers(range, each));
  const messages = seenIn(view, range, retention === "hard" && isCovered ? "people" : "models");
  const ids = new Set(range.keep.map((position) => messageAt(view, position).id));
  return { messages, kept: messages.filter(({ id }) => ids.has(id)) };
}

/** The fact that puts what a strategy made in the place of a range. */
export function draftCompaction(
  source: DraftSource,
  view: BranchView,
  range: CompactionRange,
  output: StrategyOutput,
  { retention, reason, strategy, tokens }: CompactionRecord,
): Draft<"history.compacted"> {
  const { from, to, turnId } = range;
  const { model, usage } = output;
  const over = replacedBy(view, range, retention);
  return historyCompacted(
    source,
    {
      ...{ retention, from, to, ...endsOf(view, range), reason, strategy },
      keep: keptPositions(view, range, output),
      ...(over.length > 0 && { over: over.map(({ seq }) => seq) }),
      ...(turnId !== undefined && { turnId }),
      ...(model !== undefined && { model }),
      ...(usage && { usage: { ...usage } }),
      ...(tokens && { tokens }),
    },
    output.replacements,
  );
}

/** The compactions in force whose place one with this range takes. */
function replacedBy(
  { overlays }: BranchView,
  range: Pick<CompactionRange, "from" | "to">,
  retention: "soft" | "hard",
): Overlay[] {
  return overlays.filter((each) => covers(range, each) && (retention === "hard" || !isHard(each)));
}

/** The ids at the ends of a range. Where the messages are not held, the compaction that covers them knows them. */
function endsOf(view: BranchView, { from, to }: CompactionRange): { first: string; last: string } {
  const first = from < view.skipped ? view.overlays.find((each) => each.from === from)?.first : undefined;
  const last = to <= view.skipped ? view.overlays.find((each) => each.to === to)?.last : undefined;
  return { first: first ?? messageAt(view, from).id, last: last ?? messageAt(view, to - 1).id };
}

/** What stays anyway, and what the strategy wants to stay. */
function keptPositions(view: BranchView, range: CompactionRange, { keep = [] }: StrategyOutput): number[] {
  const wanted = new Set(keep);
  for (const position of range.keep) wanted.delete(messageAt(view, position).id);
  const positions = wanted.size > 0 ? findIn(view, range, wanted) : [];
  if (positions.length === wanted.size) return [...range.keep, ...positions].sort((a, b) => a - b);
  const found = new Set(positions.map((position) => messageAt(view, position).id));
  const missing = [...wanted].find((id) => !found.has(id))!;
  const sentence = `The strategy keeps message "${missing}", which is not in the range that it was given.`;
  throw new BoughError("invalid_argument", sentence, { data: { messageId: missing } });
}

/** The positions of messages that a range covers, of those that no earlier compaction hides. */
function findIn(view: BranchView, { from, to }: CompactionRange, ids: ReadonlySet<string>): number[] {
  const unclosed = unclosedMessages(view);
  const inside = outermost(view.overlays.filter((each) => covers({ from, to }, each)));
  const positions: number[] = [];
  for (let position = from; position < to; position++) {
    const over = inside.find((each) => each.from <= position && position < each.to);
    if (over) {
      for (const { at, message } of over.kept) if (ids.has(message.id)) positions.push(at);
      position = over.to - 1;
    } else if (ids.has(messageAt(view, position, unclosed).id)) positions.push(position);
  }
  return positions;
}
