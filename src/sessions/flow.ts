// Flow: the events of one turn or one run, out of a log that holds many. A fact says whose it is directly (`turnId`, `runId`)
// or through what it refers to: an answer through its question, the end of a task through its beginning, and everything that
// happens in a turn through the run that works on the turn at that time.
//   F1. Whose a fact is depends on earlier facts of the same turn, so a flow is read from the beginning of its turn.
//   F2. A turn that is closed, and has no task that goes on, has no further events: reading ends there.

import { BoughError } from "../base/errors.ts";
import type { Fact, UnknownFact } from "../events/index.ts";
import { type BranchRef, checkRead, defaultReadLimit, type ReadOptions } from "../log/index.ts";
import { resolveBranch } from "./branches.ts";
import type { Context, Scope } from "./context.ts";
import type { EventPage } from "./history.ts";

/** Which events: those of a range, and of these only some. */
export interface EventQuery extends ReadOptions {
  /** Only events of this turn. */
  readonly turnId?: string;
  /** Only events of this run. */
  readonly runId?: string;
  /** Only events of this type. */
  readonly type?: string;
}

type Known = Fact | UnknownFact;
/** Where a flow lies: its first fact, and the last one of its turn once that is closed. */
interface Extent {
  readonly from: number;
  readonly to: number;
}

export function isSelective({ turnId, runId, type }: EventQuery): boolean {
  return turnId !== undefined || runId !== undefined || type !== undefined;
}

/** The events that are asked for: of a turn or a run, of a type, in a range. */
export async function readSelected(context: Context, scope: Scope, query: EventQuery): Promise<EventPage> {
  checkRead(query);
  for (const name of ["turnId", "runId", "type"] as const) checkText(name, query[name]);
  const ref = await resolveBranch(context, scope);
  const isOfFlow = query.turnId !== undefined || query.runId !== undefined;
  const facts = await (isOfFlow ? readFlow(context, ref, query) : readType(context, ref, query));
  const events = [...facts];
  const { limit = defaultReadLimit, reverse = false } = query;
  if (events.length === 0 || events.length < limit) return events;
  // Not a part of the list: code that compares or writes it sees the events and nothing else.
  return Object.defineProperty(events, reverse ? "before" : "after", { value: facts.at(-1)!.seq });
}

async function readType(context: Context, ref: BranchRef, query: EventQuery): Promise<Known[]> {
  const { type, limit = defaultReadLimit, ...range } = query;
  const found: Known[] = [];
  for await (const fact of factsIn(context, ref, range)) {
    if (found.length >= limit) break;
    if (fact.type === type) found.push(fact);
  }
  return found;
}

/** F1, F2. */
async function readFlow(context: Context, ref: BranchRef, query: EventQuery): Promise<Known[]> {
  const { type, after = 0, before = Number.POSITIVE_INFINITY, limit = defaultReadLimit, reverse = false } = query;
  const { from, to } = await extentOf(context, ref, query);
  const flow = new Flow(query);
  const found: Known[] = [];
  for await (const fact of factsIn(context, ref, { after: from - 1, before })) {
    const isWanted = flow.has(fact) && fact.seq > after && (type === undefined || fact.type === type);
    if (isWanted) found.push(fact);
    if (found.length > limit) reverse ? found.shift() : found.pop();
    if ((!reverse && found.length === limit) || (fact.seq >= to && !flow.goesOn)) break;
  }
  return reverse ? found.reverse() : found;
}

async function* factsIn(context: Context, ref: BranchRef, range: ReadOptions): AsyncGenerator<Known> {
  let rest = range;
  for (;;) {
    const { facts } = await context.journal.read(ref, { ...rest, limit: defaultReadLimit });
    yield* facts;
    const last = facts.at(-1);
    if (!last || facts.length < defaultReadLimit) return;
    rest = { ...rest, ...(range.reverse ? { before: last.seq } : { after: last.seq }) };
  }
}

/** As the branch's view has it. A turn that was reverted away is in no view: then the whole log is looked through. */
async function extentOf(context: Context, ref: BranchRef, { turnId, runId }: EventQuery): Promise<Extent> {
  const { view } = await context.views.load(ref);
  const isIt = (turn: { readonly id: string; readonly runs: readonly { readonly runId?: string }[] }) =>
    (turnId === undefined || turn.id === turnId) &&
    (runId === undefined || turn.runs.some((run) => run.runId === runId));
  const closed = view.turns.find(isIt);
  if (closed) return closed;
  const open = [...view.staged, ...(view.open ? [view.open] : [])].find(isIt);
  return { from: open?.from ?? 1, to: Number.POSITIVE_INFINITY };
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

/** What a fact may say of whose it is. */
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
  throw new BoughError("invalid_argument", `${name} must be a text that is not empty.`, { data: { name } });
}
