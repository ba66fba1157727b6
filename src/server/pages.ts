// Paged responses: a list is serialised item by item until the response is full, and tells where it stopped.

import { utf8Length } from "../base/bytes.ts";
import { decodeCursor, encodeCursor } from "../log/index.ts";
import { breathe } from "./breathe.ts";
import { jsonResponse } from "./compress.ts";

/** How much text is serialised before yielding to other tasks. */
const breathAt = 512 * 1024;

/** Fills one response with items until it is full, with at least one. */
export class AnswerRoom {
  #left: number;
  #isEmpty = true;
  #sinceBreath = 0;

  constructor(bytes: number) {
    this.#left = bytes;
  }

  /** The first items, as JSON, as many as fit. */
  first(items: readonly unknown[]): Promise<string[]> {
    return this.#write(items.length, (i) => items[i]);
  }

  /** The last items, likewise, in their order. */
  async last(items: readonly unknown[]): Promise<string[]> {
    return (await this.#write(items.length, (i) => items[items.length - 1 - i])).reverse();
  }

  async #write(count: number, item: (i: number) => unknown): Promise<string[]> {
    const texts: string[] = [];
    for (let i = 0; i < count; i++) {
      const text = JSON.stringify(item(i));
      const bytes = utf8Length(text) + 1;
      if (bytes > this.#left && !this.#isEmpty) {
        this.#left = 0;
        break;
      }
      this.#isEmpty = false;
      this.#left -= bytes;
      texts.push(text);
      await this.#breathe(bytes);
    }
    return texts;
  }

  async #breathe(bytes: number): Promise<void> {
    this.#sinceBreath += bytes;
    if (this.#sinceBreath < breathAt) return;
    this.#sinceBreath = 0;
    await breathe();
  }
}

/** A JSON response of serialised and plain fields; those without a value are left out. */
export function jsonAnswer(
  written: Readonly<Record<string, string | readonly string[]>>,
  more: Readonly<Record<string, unknown>>,
): Response {
  const fields = Object.entries(more)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`);
  for (const [name, value] of Object.entries(written)) {
    fields.push(`${JSON.stringify(name)}:${typeof value === "string" ? value : `[${value.join(",")}]`}`);
  }
  return jsonResponse(`{${fields.join(",")}}`);
}

/** A list that is in memory, and where its items are. */
interface Listing<Item> {
  readonly items: readonly Item[];
  readonly idOf: (item: Item) => string;
  readonly timeOf: (item: Item) => number;
  readonly order: "oldest" | "newest";
}

export const byCreation = {
  idOf: ({ id }: { readonly id: string }) => id,
  timeOf: ({ createdAt }: { readonly createdAt: number }) => createdAt,
};

/** Which page of a list a client wants. */
export interface PageQuery {
  readonly limit?: number;
  readonly cursor?: string;
}

const largestPage = 1000;

/** The items after the cursor, as many as fit, and the cursor of the rest if there are more. */
export async function listAnswer<Item>(
  name: string,
  listing: Listing<Item>,
  { limit = largestPage, cursor }: PageQuery,
  { answerBytes }: { answerBytes: number },
): Promise<Response> {
  const rest = listing.items.slice(cursor === undefined ? 0 : startAfter(listing, cursor));
  const texts = await new AnswerRoom(answerBytes).first(rest.slice(0, limit));
  const last = texts.length < rest.length ? rest[texts.length - 1] : undefined;
  const place = last && { activeAt: listing.timeOf(last), id: listing.idOf(last) };
  return jsonAnswer({ [name]: texts }, { cursor: place && encodeCursor(place) });
}

/** If the cursor's item was removed, the list continues with those as old as it was. */
export function startAfter<Item>({ items, idOf, timeOf, order }: Listing<Item>, cursor: string): number {
  const { activeAt: time, id } = decodeCursor(cursor);
  const at = items.findIndex((item) => idOf(item) === id);
  if (at >= 0) return at + 1;
  const next = items.findIndex((item) => (order === "oldest" ? timeOf(item) >= time : timeOf(item) <= time));
  return next >= 0 ? next : items.length;
}

interface Identified {
  readonly id: string;
}

/** The newest messages of a branch that fit, open turn first, and the id before which the rest can be read. */
export async function newestMessages(
  room: AnswerRoom,
  { messages, open = [] }: { messages: readonly Identified[]; open?: readonly Identified[] | undefined },
  last: number,
): Promise<{ closed: string[]; open: string[]; before: string | undefined; firstIndex: number }> {
  const ofTurn = await room.last(open);
  const isWhole = ofTurn.length === open.length;
  const closed = isWhole ? await room.last(messages.slice(-last)) : [];
  const all = messages.length + open.length;
  const shown = closed.length + ofTurn.length;
  const at = all - shown;
  const first = at < messages.length ? messages[at] : open[at - messages.length];
  const firstIndex = messages.length - closed.length;
  return { closed, open: ofTurn, before: at > 0 ? first?.id : undefined, firstIndex };
}

/** The newest of these messages, and the id before which the rest can be read. */
export async function messagesAnswer(
  messages: readonly Identified[],
  last: number,
  { answerBytes }: { answerBytes: number },
): Promise<Response> {
  const { closed, before, firstIndex } = await newestMessages(new AnswerRoom(answerBytes), { messages }, last);
  return jsonAnswer({ messages: closed }, { before, firstIndex });
}
