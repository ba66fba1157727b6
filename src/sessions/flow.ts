// Flow: the events of one turn or one run, out of a log that holds many. A fact says whose it is directly (`turnId`, `runId`)
// or through what it refers to: an answer through its question, the end of a task through its beginning, and everything that
// happens in a turn through the run that works on the turn at that time.
//   Flow-1. Whose a fact is depends on earlier facts of the same turn, so a flow is read from the beginning of its turn.
//   Flow-2. A turn that is closed, and has no task that goes on, has no further events: reading ends there.
//   Flow-3. A page has a cursor only if there is a further event of the selection.
//   Flow-4. What is passed over is read in pieces of a bounded size.

import { BoughError } from "../base/errors.ts";
import { checkOptions, optionKeys } from "../base/options.ts";
import { type Fact, type UnknownFact, withoutTexts } from "../events/index.ts";
import { type BranchRef, checkRead, defaultReadLimit, type ReadOptions } from "../log/index.ts";
import { resolveBranch } from "./branches.ts";
import type { Context, Scope } from "./context.ts";
import type { EventPage } from "./history.ts";

/** Selects events: a range, and filters within it. */
export interface EventQuery extends ReadOptions {
  /** Only events of this turn. */
  readonly turnId?: string;
  /** Only events of this run. */
  readonly runId?: string;
  /** Only events of this type. */
  readonly type?: string;
  /** Only events of these types. */
  readonly types?: readonly string[];
}

const queryKeys = optionKeys<EventQuery>({
  turnId: true,
  runId: true,
  type: true,
  types: true,
  after: true,
  before: true,
  limit: true,
  reverse: true,
});

type Known = Fact | UnknownFact;
/** Where a flow lies: its first fact, and the last one of its turn once that is closed. */
interface Extent {
  readonly from: number;
  readonly to: number;
}

export function isSelective({ turnId, runId, type, types }: EventQuery): boolean {
  return [turnId, runId, type, types].some((each) => each !== undefined);
}

/** Whether a fact is of a type that is wanted. */
function isOfType({ type: wanted, types }: EventQuery, { type }: Known): boolean {
  return (wanted === undefined || type === wanted) && (types === undefined || types.includes(type));
}

/**
 * The selected events: of a turn or a run, of a type, in a range. Up to `limit` of them and up to about `bytes` in total, but
 * at least one (Flow-3).
 */
export async function readSelected(
  context: Context,
  scope: Scope,
  { bytes = Number.POSITIVE_INFINITY, ...query }: EventQuery & { bytes?: number },
): Promise<EventPage> {
  checkOptions("The options of events", query, queryKeys);
  checkRead(query);
  for (const name of ["turnId", "runId", "type"] as const) checkText(name, query[name]);
  for (const type of query.types ?? []) checkText("types", type);
  const ref = await resolveBranch(context, scope);
  const { limit = defaultReadLimit, reverse = false } = query;
  if (limit === 0) return [];
  const isOfFlow = query.turnId !== undefined || query.runId !== undefined;
  // Flow-1: a flow is read forwards, whichever of its events are wanted.
  const isWindow = isOfFlow && reverse;
  const page = new SelectedPage({ limit, bytes, isWindow });
  for await (const fact of isOfFlow ? flowIn(context, ref, query) : typeIn(context, ref, query)) {
    if (!page.take(fact)) break;
  }
  const events = isWindow ? page.facts.reverse() : page.facts;
  if (!page.isCut) return events;
  // Not a part of the list: code that compares or writes it sees the events and nothing else.
  return Object.defineProperty(events, reverse ? "before" : "after", { value: events.at(-1)!.seq });
}

/** What fits into one page: the first of the facts that it is given, or the last of them. */
class SelectedPage {
  readonly facts: Known[] = [];
  /** Whether there was a fact that is not in it (Flow-3). */
  isCut = false;
  readonly #limit: number;
  readonly #bytes: number;
  readonly #isWindow: boolean;
  readonly #sizes: number[] = [];
  #size = 0;

  constructor({ limit, bytes, isWindow }: { limit: number; bytes: number; isWindow: boolean }) {
    this.#limit = limit;
    this.#bytes = bytes;
    this.#isWindow = isWindow;
  }

  /** False when no further fact can get in. */
  take(fact: Known): boolean {
    const size = this.#bytes === Number.POSITIVE_INFINITY ? 0 : JSON.stringify(fact).length;
    if (!this.#isWindow && this.#isFull(size)) {
      this.isCut = true;
      return false;
    }
    while (this.#isFull(size)) {
      this.isCut = true;
      this.facts.shift();
      this.#size -= this.#sizes.shift()!;
    }
    this.facts.push(fact);
    this.#sizes.push(size);
    this.#size += size;
    return true;
  }

  #isFull(size: number): boolean {
    const { length } = this.facts;
    return length > 0 && (length >= this.#limit || this.#size + size > this.#bytes);
  }
}

async function* typeIn(context: Context, ref: BranchRef, query: EventQuery): AsyncGenerator<Known> {
  const { type: _type, types: _types, limit: _limit, ...range } = query;
  for await (const fact of factsIn(context, ref, range)) if (isOfType(query, fact)) yield fact;
}

/** Flow-1, Flow-2. */
async function* flowIn(context: Context, ref: BranchRef, query: EventQuery): AsyncGenerator<Known> {
  const { after = 0, before = Number.POSITIVE_INFINITY } = query;
  const { from, to } = await extentOf(context, ref, query);
  const flow = new Flow(query);
  for await (const fact of factsIn(context, ref, { after: from - 1, before })) {
    const isWanted = flow.has(fact) && fact.seq > after && isOfType(query, fact);
    if (isWanted) yield fact;
    if (fact.seq >= to && !flow.goesOn) return;
  }
}

/** Flow-4. */
async function* factsIn(context: Context, ref: BranchRef, range: ReadOptions): AsyncGenerator<Known> {
  for await (const { facts } of context.journal.pieces(ref, range)) yield* facts.map(withoutTexts);
}

/** As the branch's view has it. A turn that was reverted away is in no view: then the whole log is looked through. */
async function extentOf(context: Context, ref: BranchRef, { turnId, runId }: EventQuery): Promise<Extent> {
  const isIt = (turn: { readonly id: string; readonly runs: readonly { readonly runId?: string }[] }) =>
    (turnId === undefined || turn.id === turnId) &&
    (runId === undefined || turn.runs.some((run) => run.runId === runId));
  const { view } = await context.views.loadForRun(ref);
  const open = [...view.staged, ...(view.open ? [view.open] : [])].find(isIt);
  if (open) return { from: open.from, to: Number.POSITIVE_INFINITY };
  const closed = view.turns.find(isIt) ?? (await context.views.load(ref)).view.turns.find(isIt);
  return closed ?? { from: 1, to: Number.POSITIVE_INFINITY };
}

/** Tells, fact by fact and in order, which belong to a turn or a run. */
class Flow {
  readonly #turnId: string | undefined;
  readonly #runId: string | undefined;
  /** The run that works on a turn. */
  readonly #runs = new Map<string, string | undefined>();
  /** Questions and tasks that belong to it. */
  readonly #owned = new Set<string>();
  #tasks = 0;

  constructor({ turnId, runId }: EventQuery) {
    this.#turnId = turnId;
    this.#runId = runId;
  }

  /** Whether something that it began may still end. */
  get goesOn(): boolean {
    return this.#tasks > 0;
  }

  has(fact: Known): boolean {
    if (fact.type === "turn.started") this.#runs.set(fact.id, fact.runId);
    if (fact.type === "turn.resumed") this.#runs.set(fact.turnId, fact.runId);
    const isIn = this.#isIn(fact as Refers);
    if (!isIn) return false;
    if (fact.type === "interaction.opened" || fact.type === "task.started") this.#owned.add(fact.id);
    if (fact.type === "task.started") this.#tasks++;
    if (fact.type === "task.ended") this.#tasks--;
    return true;
  }

  #isIn({ id, type, turnId = type === "turn.started" ? id : undefined, ...fact }: Refers): boolean {
    const cause = fact.taskId ?? (turnId === undefined ? fact.interactionId : undefined);
    if (cause !== undefined) return this.#owned.has(cause);
    const runId = fact.runId ?? (turnId === undefined ? undefined : this.#runs.get(turnId));
    const isOfTurn = turnId === undefined ? this.#works(runId) : turnId === this.#turnId;
    return (this.#turnId === undefined || isOfTurn) && (this.#runId === undefined || runId === this.#runId);
  }

  /** Whether a run is one that works on the turn. */
  #works(runId: string | undefined): boolean {
    return runId !== undefined && this.#turnId !== undefined && this.#runs.get(this.#turnId) === runId;
  }
}

/** The fields by which a fact refers to its turn, run, task or question. */
interface Refers {
  readonly id: string;
  readonly type: string;
  readonly turnId?: string;
  readonly runId?: string;
  readonly taskId?: string;
  readonly interactionId?: string;
}

function checkText(name: string, value: unknown): void {
  if (value === undefined || (typeof value === "string" && value !== "")) return;
  throw new BoughError("invalid_argument", `${name} must be a non-empty string.`, { data: { name } });
}
