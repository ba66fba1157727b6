// Reading segments: all pieces of a view, only those with what a model sees, or those that such a view lacks.

import type { BranchRef, Store } from "../log/index.ts";
import type { Facts, Journal } from "../log/journal.ts";
import type { BranchView } from "../projection/index.ts";
import {
  joinSegments,
  nothingSealed,
  type Piece,
  parseHead,
  parseSegment,
  prepend,
  type Sealed,
  visibleFrom,
} from "../projection/segment.ts";
import { pageSize } from "./earlier.ts";

/** A view made of pieces. */
export interface Joined {
  readonly view: BranchView;
  readonly sealed: Sealed[];
  readonly lastId: string;
  /** The size of the text that was read. */
  readonly size: number;
  /** What was read of the log behind the newest piece. */
  readonly behind: Facts;
}

export class Pieces {
  readonly #store: Store;
  readonly #journal: Journal;

  constructor(store: Store, journal: Journal) {
    this.#store = store;
    this.#journal = journal;
  }

  /**
   * The view of the newest piece at or before a position: all of it, or with `part` only the messages from where a model
   * sees them, and the turns of the pieces that have those. Undefined when a piece is missing or does not fit.
   */
  async join(ref: BranchRef, seq: number, { part }: { part: boolean }): Promise<Joined | undefined> {
    const newest = await this.#pieceAt(ref, seq, part ? ({ rest }) => visibleFrom(rest) : undefined);
    const behind = newest && (await this.#behind(ref, newest, seq));
    const skipped = newest && part ? visibleFrom(newest.rest) : 0;
    const before = behind && (await this.#before(ref, newest, skipped));
    const pieces = before && [...before, newest];
    const joined = pieces && joinSegments(pieces, skipped);
    return joined && { ...joined, behind, lastId: newest.id, size: sizeOf(pieces) };
  }

  /** Puts in front of a view what it does not hold, and returns its size; undefined when a piece is missing or does not fit. */
  async complete(ref: BranchRef, view: BranchView, sealed: readonly Sealed[]): Promise<number | undefined> {
    const { skipped, skippedTurns } = view;
    const last = sealed.find(({ messages, turns }) => messages >= skipped && turns >= skippedTurns);
    const piece = last && (await this.#pieceAt(ref, last.to));
    const before = piece?.id === last?.id && piece && (await this.#before(ref, piece, 0));
    const pieces = before && [...before, piece];
    const joined = pieces && joinSegments(pieces);
    if (!joined) return undefined;
    prepend(view, joined.view);
    // Of the piece in which it began, about this much is new.
    const { messages } = piece.before.at(-1) ?? nothingSealed;
    return sizeOf(before) + Math.ceil((piece.size * (skipped - messages)) / Math.max(1, last!.messages - messages));
  }

  /** The newest head at or before a position, with what the log has behind it. */
  async head(ref: BranchRef, seq: number): Promise<(Pick<Piece, "id" | "rest"> & { behind: Facts }) | undefined> {
    const segment = await this.#store.segments?.get(ref, seq);
    const head = segment && parseHead(segment.lines);
    const behind = head && (await this.#behind(ref, head, seq));
    return behind && { ...head, behind };
  }

  /** The pieces before this one that have messages from a position on, oldest first; undefined when one is missing. */
  async #before(ref: BranchRef, { before, rest }: Piece, from: number): Promise<Piece[] | undefined> {
    const pieces: Piece[] = [];
    const needed = (sealed: readonly Sealed[]) => sealed.filter(({ messages }) => from === 0 || messages > from);
    let asked = new Map<number, Piece | undefined>();
    for (let [left, below] = [needed(before), rest.seq]; left.length > 0; ) {
      const { to } = left.at(-1)!;
      if (!asked.has(to)) asked = await this.#piecesAt(ref, left, from);
      const piece = asked.get(to);
      // Views-3: positions only get smaller, or this might not end. Whether they fit is checked when they are joined.
      if (!piece || to >= below) return undefined;
      pieces.push(piece);
      [left, below] = [needed(piece.before), piece.rest.seq];
    }
    return pieces.reverse();
  }

  async #pieceAt(ref: BranchRef, at: number, from?: Parameters<typeof parseSegment>[1]): Promise<Piece | undefined> {
    const segment = at > 0 ? await this.#store.segments?.get(ref, at) : undefined;
    return segment && parseSegment(segment.lines, from);
  }

  /** All at once: a store may answer what is asked for together in one go. */
  async #piecesAt(ref: BranchRef, sealed: readonly Sealed[], from: number): Promise<Map<number, Piece | undefined>> {
    const read = async ({ to }: Sealed) => [to, await this.#pieceAt(ref, to, () => from)] as const;
    return new Map(await Promise.all(sealed.map(read)));
  }

  /**
   * The log from the fact at which the piece was cut, as far as a page goes. Views-3: undefined when the piece was not cut from
   * this log, but from one that had the branch's id before.
   */
  async #behind(ref: BranchRef, { id, rest }: Pick<Piece, "id" | "rest">, to: number): Promise<Facts | undefined> {
    const page = await this.#journal.read(ref, { after: rest.seq - 1, before: to + 1, limit: pageSize });
    return page.facts[0]?.id === id ? page : undefined;
  }
}

function sizeOf(pieces: readonly Piece[]): number {
  return pieces.reduce((sum, { size }) => sum + size, 0);
}
