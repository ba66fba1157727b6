// The inbox: every open question, over all sessions. The store's index of open branches leads to them; of
// each branch only the end of its log is read, back to its oldest open question.

import { utf8Length } from "../base/bytes.ts";
import { BoughError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import { checkOptions, oneOf, optionTable, text } from "../base/options.ts";
import type { Fact, Interaction, InteractionKind, UnknownFact } from "../events/index.ts";
import { interactionKinds } from "../events/interactions.ts";
import {
  type BranchRecord,
  type BranchRef,
  branchKey,
  decodeOpenCursor,
  defaultPageSize,
  encodeOpenCursor,
} from "../log/index.ts";
import { openTurnIn, type RowHeader } from "../projection/header.ts";
import { interactionOf } from "../projection/records.ts";
import { isHeld } from "./claims.ts";
import type { Context } from "./context.ts";
import { isOver, mirrorOf } from "./interactions.ts";

/** An open question and the branch it is on. */
export type OpenInteraction<Kind extends InteractionKind = InteractionKind> = Interaction<Kind> &
  BranchRef & {
    /** The agent and the run that last worked on its turn. */
    readonly agentId?: string;
    readonly runId?: string;
  };

/** Which questions to list; all conditions must hold. */
export interface InteractionQuery {
  readonly sessionId?: string;
  readonly kind?: Interaction["kind"];
  /** Only questions of turns that this agent last worked on. */
  readonly agentId?: string;
  /** At most this many (default 50). */
  readonly limit?: number;
  /** The `cursor` of the previous page. */
  readonly cursor?: string;
}

const queryTable = optionTable<InteractionQuery>({
  sessionId: text,
  kind: oneOf(...interactionKinds),
  agentId: text,
  limit: {
    fits: (value) => value === Number.POSITIVE_INFINITY || (Number.isInteger(value) && Number(value) >= 1),
    wanted: "an integer ≥ 1",
  },
  cursor: text,
});

/** A page of questions that wait for an answer. */
export interface InteractionList {
  readonly interactions: readonly OpenInteraction[];
  /** Present when there may be more. */
  readonly cursor?: string;
}

/** How many branches one call looks at, so that a filter which finds nothing ends; the cursor goes on from there. */
const mostBranches = 1000;
const readAtOnce = 8;

/** A page of open questions, ordered by session, branch and age: no more than `bytes` of them, about, and at least one. */
export async function listInteractions(
  context: Context,
  query: InteractionQuery,
  bytes = Number.POSITIVE_INFINITY,
): Promise<InteractionList> {
  checkOptions("The options of listInteractions", query, queryTable);
  const { limit = defaultPageSize, sessionId } = query;
  if (sessionId !== undefined) checkId(sessionId, "session");
  const fitting: Placed[] = [];
  let looked = 0;
  let room = bytes;
  for await (const records of openFrom(context, query)) {
    for (let i = 0; i < records.length; i += readAtOnce) {
      const batch = records.slice(i, i + readAtOnce);
      for (const each of await Promise.all(batch.map((record) => questionsOn(context, record).catch(skip)))) {
        for (const placed of each) {
          if (!fits(placed, query, context.clock.now())) continue;
          room -= bytes === Number.POSITIVE_INFINITY ? 0 : utf8Length(JSON.stringify(placed.interaction)) + 1;
          if (fitting.length === limit || (room < 0 && fitting.length > 0)) return pageOf(fitting);
          fitting.push(placed);
        }
      }
      looked += batch.length;
      if (looked >= mostBranches) return { interactions: fitting.map(shown), cursor: encodeOpenCursor(batch.at(-1)!) };
    }
  }
  return { interactions: fitting.map(shown) };
}

/** Questions of a child are shown on the branch whose turn waits for it, or that began it as a background task. */
async function isMirrored({ store, views }: Context, { header }: BranchRecord): Promise<boolean> {
  const { visibility, owner, metadata, asks = [] } = header as RowHeader;
  if (visibility !== "hidden" || !owner) return false;
  const { sessionId, branchId, turnId } = owner;
  const record = await store.getBranch({ sessionId, branchId });
  if (metadata?.awaited === false && record) {
    const { interactions } = (await views.loadForRun({ sessionId, branchId })).view;
    const mirrored = new Set(interactions.map((each) => mirrorOf(each)?.interactionId));
    return asks.every((id) => mirrored.has(id));
  }
  return record !== undefined && openTurnIn(record.header as RowHeader) === turnId;
}

/** What is gone meanwhile asks nothing any more; a branch that is damaged must not hide the others. */
function skip(error: unknown): Placed[] {
  if (skipped.some((code) => BoughError.is(error, code))) return [];
  throw error;
}

const skipped = ["session_not_found", "branch_not_found", "store_corrupt"] as const;

interface Placed {
  readonly interaction: OpenInteraction;
  /** Where it was asked. */
  readonly seq: number;
}

const shown = ({ interaction }: Placed): OpenInteraction => interaction;

function fits({ interaction, seq }: Placed, { kind, agentId, cursor }: InteractionQuery, now: number): boolean {
  if (kind !== undefined && interaction.kind !== kind) return false;
  if (agentId !== undefined && interaction.agentId !== agentId) return false;
  const start = cursor === undefined ? undefined : decodeCursor(cursor);
  const isInside = start && branchKey(start.ref) === branchKey(interaction);
  return !(isInside && seq <= (start.seq ?? Number.POSITIVE_INFINITY)) && !isOver(interaction, now);
}

/** A page that something comes after. */
function pageOf(fitting: readonly Placed[]): InteractionList {
  const last = fitting.at(-1);
  if (!last) return { interactions: [] };
  return { interactions: fitting.map(shown), cursor: `${encodeOpenCursor(last.interaction)}@${last.seq}` };
}

/** A place in the inbox: behind a question of this branch, or behind all of them. */
function decodeCursor(cursor: string): { ref: BranchRef; seq?: number } {
  const [, place = cursor, seq] = /^(.*)@(\d{1,15})$/.exec(cursor) ?? [];
  return { ref: decodeOpenCursor(place), ...(seq !== undefined && { seq: Number(seq) }) };
}

/** Branches where something may be asked, from the cursor on; the one that the page before ended in comes first. */
async function* openFrom(
  { store, clock }: Context,
  { sessionId, cursor: given, limit = defaultPageSize }: InteractionQuery,
): AsyncGenerator<readonly BranchRecord[]> {
  const own = sessionId === undefined ? {} : { sessionId };
  const start = given === undefined ? undefined : decodeCursor(given);
  const first = start?.seq === undefined ? undefined : await store.getBranch(start.ref);
  if (first) yield [first];
  let cursor = start && encodeOpenCursor(start.ref);
  const claims = await store.listRuns(own);
  const now = clock.now();
  const held = new Set(claims.filter((claim) => isHeld(claim, now)).map(branchKey));
  do {
    const size = Math.min(Math.max(limit, readAtOnce), 500);
    const page = await store.listOpen({ ...own, limit: size, ...(cursor !== undefined && { cursor }) });
    // A run records its questions in the header. A turn without an active run may come from a version that did not.
    yield page.branches.filter((record) => (record.header as RowHeader).asks || !held.has(branchKey(record)));
    cursor = page.cursor;
  } while (cursor !== undefined);
}

/** The open questions of a branch as it was when the record was taken, oldest first. */
async function questionsOn(context: Context, record: BranchRecord): Promise<Placed[]> {
  const { sessionId, branchId, header } = record;
  const ref = { sessionId, branchId };
  const { asks } = header as RowHeader;
  const turn = openTurnIn(header as RowHeader);
  if (await isMirrored(context, record)) return [];
  const wanted = asks && new Set(asks);
  const closed = new Set<string>();
  const found: Placed[] = [];
  let worker: Pick<OpenInteraction, "agentId" | "runId"> | undefined = turn === undefined ? {} : undefined;
  const take = (fact: Fact | UnknownFact): boolean => {
    if (fact.type === "interaction.answered" || fact.type === "interaction.expired") closed.add(fact.interactionId);
    if (fact.type === "interaction.opened" && !closed.has(fact.id) && (wanted?.has(fact.id) ?? fact.turnId === turn)) {
      found.unshift({ seq: fact.seq, interaction: { ...interactionOf(fact), ...ref } });
    }
    if (fact.type === "interaction.opened") wanted?.delete(fact.id);
    const isBegun = fact.type === "turn.started" && fact.id === turn;
    if (isBegun || (fact.type === "turn.resumed" && fact.turnId === turn)) worker ??= workerOf(fact);
    return wanted ? wanted.size === 0 && worker !== undefined : isBegun;
  };
  for await (const { facts } of context.journal.pieces(ref, { before: record.seq + 1, reverse: true })) {
    if (facts.some(take)) break;
  }
  return found.map(({ seq, interaction }) => {
    return { seq, interaction: interaction.turnId === turn ? { ...interaction, ...worker } : interaction };
  });
}

function workerOf({ agentId, runId }: { agentId?: string | undefined; runId?: string | undefined }) {
  return { ...(agentId !== undefined && { agentId }), ...(runId !== undefined && { runId }) };
}
