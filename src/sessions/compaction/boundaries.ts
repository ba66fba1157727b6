// Ranges that a caller names: from one message to another, widened to previous messages, whole batches or whole turns. What
// range.ts promises of its ranges (Range-1 to Range-3) holds for these.

import { BoughError } from "../../base/errors.ts";
import { callsOf } from "../../events/index.ts";
import type { BranchView } from "../../projection/index.ts";
import { isHard } from "../../projection/overlay.ts";
import type { MessageRange } from "../../wire/index.ts";
import type { CompactionRange } from "./port.ts";
import {
  at,
  coveringAt,
  coversNew,
  findPosition,
  type Ground,
  isPair,
  type RangeOptions,
  rangeOf,
  survey,
} from "./range.ts";

interface Span {
  readonly from: number;
  readonly to: number;
}

/** The range between two messages; refuses one that can't be compacted. */
export function rangeBetween(view: BranchView, wanted: MessageRange, options: RangeOptions = {}): CompactionRange {
  const ground = survey(view, options);
  const { from, to = from, previous = 0, whole } = wanted;
  const [first, last] = [locate(ground, from), locate(ground, to)];
  if (first.from > last.from) throw refused(`Message "${from}" comes after message "${to}".`, { from, to });
  const named = { from: Math.max(0, first.from - previous), to: last.to };
  if (whole === undefined) checkPairs(ground, named);
  const span = cover(ground, whole === "turns" ? widenToTurns(ground, named) : named);
  checkReach(ground, span);
  const range = rangeOf(ground, span.from, span.to);
  if (coversNew(ground, range)) return range;
  throw new BoughError("nothing_to_compact", "Every message of the range stays as it is: none can be compacted.", {
    data: { from, to },
  });
}

/** The position of a message; what replaced messages stands for all of them. */
function locate(ground: Ground, id: string): Span {
  const over = ground.deciding.find(({ replacements }) => replacements.some((each) => each.id === id));
  if (over) return over;
  const position = findPosition(ground, (message) => message.id === id);
  if (position === undefined) {
    throw new BoughError("message_not_on_branch", `The branch has no message "${id}".`, { data: { messageId: id } });
  }
  const hiding = coveringAt(ground, position);
  if (!hiding || hiding.kept.some((each) => each.at === position)) return { from: position, to: position + 1 };
  const sentence = `Message "${id}" is hidden already, by compaction ${hiding.id}.`;
  throw refused(sentence, { messageId: id, compactionId: hiding.id });
}

function widenToTurns(ground: Ground, { from, to }: Span): Span {
  const turnAt = (position: number) => at(ground, position).turnId;
  let [start, end] = [from, to];
  while (start > ground.view.skipped && turnAt(start - 1) === turnAt(from)) start--;
  while (end < ground.total && turnAt(end) === turnAt(to - 1)) end++;
  return { from: start, to: end };
}

/** Widens a span until it cuts neither a batch nor a compaction in force. */
function cover(ground: Ground, span: Span): Span {
  let { from, to } = span;
  for (let before = -1; before !== to - from; ) {
    before = to - from;
    if (isPair(ground, from - 1, from)) from--;
    if (isPair(ground, to - 1, to)) to++;
    for (const over of ground.view.overlays) {
      const isApart = over.to <= from || over.from >= to;
      const isWithin = over.from <= from && to <= over.to && ground.retention === "hard" && !isHard(over);
      if (isApart || isWithin) continue;
      [from, to] = [Math.min(from, over.from), Math.max(to, over.to)];
    }
  }
  return { from, to };
}

function checkPairs(ground: Ground, { from, to }: Span): void {
  const cut = isPair(ground, from - 1, from) ? from : isPair(ground, to - 1, to) ? to : undefined;
  if (cut === undefined) return;
  const [asked, results] = [at(ground, cut - 1), at(ground, cut)];
  const calls = callsOf(asked).map(({ toolName }) => toolName);
  const sentence = `The range would cut the calls of message "${asked.id}" (${calls.join(", ")}) from their results: widen it with whole: "calls".`;
  throw refused(sentence, { messageId: asked.id, results: results.id });
}

function checkReach({ view, retention, count, end }: Ground, { to }: Span): void {
  if (to <= count || to <= end) return;
  const data = { turnId: view.open?.id ?? view.staged.at(-1)?.id };
  if (retention === "hard") throw refused("A hard compaction can't reach into a turn that is not closed.", data);
  if (view.staged.length > 0) throw refused("A compaction can't reach into a turn that waits to be saved.", data);
  throw refused("The last calls of the open turn, and what follows them, can't be compacted.", data);
}

function refused(sentence: string, data: Record<string, unknown>): BoughError {
  return new BoughError("invalid_argument", sentence, { data });
}
