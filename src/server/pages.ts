// Answers in pages: a list is written item by item until the answer is as large as it may be, and says where it stopped.

import { setImmediate } from "node:timers/promises";
import { BoughError } from "../base/errors.ts";
import type { BranchRef } from "../log/store.ts";
import type { OpenTurn } from "../projection/index.ts";

/** Text is written for so long before others have their turn. */
const breathAt = 512 * 1024;

/** What fits into one answer: items until it is full, and at least one. */
export class AnswerRoom {
  #left: number;
  #isEmpty = true;
  #sinceBreath = 0;

  constructor(bytes: number) {
    this.#left = bytes;
  }

  /** The first of the items, as JSON, as many as there is room for. */
  first(items: readonly unknown[]): Promise<string[]> {
    return this.#write(items.length, (i) => items[i]);
  }

  /** The last of the items, likewise; in their order. */
  async last(items: readonly unknown[]): Promise<string[]> {
    return (await this.#write(items.length, (i) => items[items.length - 1 - i])).reverse();
  }

  async #write(count: number, item: (i: number) => unknown): Promise<string[]> {
    const texts: string[] = [];
    for (let i = 0; i < count; i++) {
      const text = JSON.stringify(item(i));
      const bytes = Buffer.byteLength(text) + 1;
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
    await setImmediate();
  }
}

/** A JSON answer of fields that are written already and fields that are not; those without a value are left out. */
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
  return new Response(`{${fields.join(",")}}`, { headers: { "content-type": "application/json" } });
}

interface Identified {
  readonly id: string;
}

/** The newest messages of a branch that fit, those of the open turn first, and the message before which the rest is. */
export async function newestMessages(
  room: AnswerRoom,
  { messages, open = [] }: { messages: readonly Identified[]; open?: readonly Identified[] | undefined },
  last: number,
): Promise<{ closed: string[]; open: string[]; before: string | undefined }> {
  const ofTurn = await room.last(open);
  const isWhole = ofTurn.length === open.length;
  const closed = isWhole ? await room.last(messages.slice(-last)) : [];
  const all = messages.length + open.length;
  const shown = closed.length + ofTurn.length;
  const at = all - shown;
  const first = at < messages.length ? messages[at] : open[at - messages.length];
  return { closed, open: ofTurn, before: at > 0 ? first?.id : undefined };
}

/** What a branch says, as far as one walks back from a message; from the newest on without one. */
export function messagesBefore(
  ref: BranchRef,
  branch: { messages: readonly Identified[]; uncommittedTurn?: OpenTurn },
  before: string | undefined,
): readonly Identified[] {
  const all = [...branch.messages, ...(branch.uncommittedTurn?.messages ?? [])];
  if (before === undefined) return all;
  const at = all.findLastIndex(({ id }) => id === before);
  if (at >= 0) return all.slice(0, at);
  throw new BoughError("message_not_on_branch", `Branch "${ref.branchId}" has no message "${before}" any more.`, {
    data: { ...ref, messageId: before },
  });
}

/** The newest of these messages, and the one before which the rest is. */
export async function messagesAnswer(
  messages: readonly Identified[],
  last: number,
  { answerBytes }: { answerBytes: number },
): Promise<Response> {
  const { closed, before } = await newestMessages(new AnswerRoom(answerBytes), { messages }, last);
  return jsonAnswer({ messages: closed }, { before });
}
