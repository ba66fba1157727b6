import { describe, expect, test } from "vitest";
import { Mailbox, type MailboxOptions } from "./mailbox.ts";

async function readAll<T>(mailbox: Mailbox<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of mailbox) items.push(item);
  return items;
}

/** Texts: upper case may not be lost; a lower-case one that begins like the one before is merged with it. */
const bounded: MailboxOptions<string> = {
  limit: 3,
  merge: (before, after) => (/[a-z]/.test(after) && before[0] === after[0] ? before + after.slice(1) : undefined),
  droppable: (item) => /^[a-z]/.test(item),
  notice: (_, count) => `(${count} lost)`,
};

function filled(...items: string[]): Mailbox<string> {
  const mailbox = new Mailbox(bounded);
  for (const item of items) mailbox.push(item);
  return mailbox;
}

describe("Mailbox-1: reading", () => {
  test("gives items in the order written, those from before and those from after it began, and then the end", async () => {
    const mailbox = new Mailbox<number>();
    mailbox.push(1);
    const reading = readAll(mailbox);
    await Promise.resolve();
    mailbox.push(2);
    mailbox.push(3);
    mailbox.close();
    mailbox.push(4);
    expect(await reading).toEqual([1, 2, 3]);
  });

  test("is refused the second time, with the reason", async () => {
    const mailbox = new Mailbox<number>();
    mailbox.close();
    await readAll(mailbox);
    expect(() => mailbox[Symbol.asyncIterator]()).toThrow(/only once/);
  });

  test("several reads may wait at once; each gets its own item, and each the end", async () => {
    const mailbox = new Mailbox<number>();
    const reader = mailbox[Symbol.asyncIterator]();
    const reads = [reader.next(), reader.next(), reader.next()];
    mailbox.push(1);
    mailbox.push(2);
    mailbox.close();
    expect((await Promise.all(reads)).map(({ value }) => value)).toEqual([1, 2, undefined]);
    expect(await reader.next()).toEqual({ value: undefined, done: true });
  });

  test("of one that failed gives what waits, then the error once, then the end", async () => {
    const mailbox = new Mailbox<number>();
    mailbox.push(1);
    mailbox.close({ error: new Error("broken") });
    mailbox.close();
    const reader = mailbox[Symbol.asyncIterator]();
    expect(await reader.next()).toEqual({ value: 1, done: false });
    await expect(reader.next()).rejects.toThrow("broken");
    expect(await reader.next()).toEqual({ value: undefined, done: true });
  });

  test("that is left frees what waits, keeps nothing more, and says so once", async () => {
    let left = 0;
    const mailbox = new Mailbox<number>({ onLeft: () => void left++ });
    for (let i = 0; i < 10; i++) mailbox.push(i);
    for await (const item of mailbox) if (item === 2) break;
    mailbox.push(10);
    mailbox.leave();
    mailbox.close();
    expect({ left, size: mailbox.size, isLeft: mailbox.isLeft }).toEqual({ left: 1, size: 0, isLeft: true });
  });

  test("that waits is ended by leaving", async () => {
    const mailbox = new Mailbox<number>();
    const reader = mailbox[Symbol.asyncIterator]();
    const read = reader.next();
    await reader.return!();
    expect(await read).toEqual({ value: undefined, done: true });
  });

  test("keeps the order over many thousand items, read in part while they are written", async () => {
    const mailbox = new Mailbox<number>();
    const reader = mailbox[Symbol.asyncIterator]();
    const seen: (number | undefined)[] = [];
    for (let i = 0; i < 10_000; i++) {
      mailbox.push(i);
      if (i % 3 > 0) seen.push((await reader.next()).value);
    }
    mailbox.close();
    for (let next = await reader.next(); !next.done; next = await reader.next()) seen.push(next.value);
    expect(seen).toEqual(Array.from({ length: 10_000 }, (_, i) => i));
  });
});

describe("Mailbox-2, Mailbox-3: past the limit", () => {
  test("nothing is merged or lost before it", async () => {
    const mailbox = filled("a1", "a2", "a3");
    mailbox.close();
    expect(await readAll(mailbox)).toEqual(["a1", "a2", "a3"]);
  });

  test("an item is merged with the newest, and nothing is lost", async () => {
    const mailbox = filled("a1", "b1", "c1", "c2", "c3");
    mailbox.close();
    expect(await readAll(mailbox)).toEqual(["a1", "b1", "c123"]);
  });

  test("neighbours that wait are merged before anything is lost", async () => {
    const mailbox = filled("a1", "a2", "b1", "C");
    mailbox.close();
    expect(await readAll(mailbox)).toEqual(["a12", "b1", "C"]);
  });

  test("what can't be merged takes the place of the oldest that may be lost, and the reader is told before it reads on", async () => {
    const mailbox = filled("A", "b", "c", "d", "E", "f");
    mailbox.close();
    expect(await readAll(mailbox)).toEqual(["(3 lost)", "A", "E", "f"]);
  });

  test("what may not be lost stays, however much it is; what may is then lost itself", async () => {
    const mailbox = filled("A", "B", "C", "D", "e", "F");
    expect(mailbox.size).toBe(5);
    mailbox.close();
    expect(await readAll(mailbox)).toEqual(["(1 lost)", "A", "B", "C", "D", "F"]);
  });

  test("each loss is told once, where the reader is then", async () => {
    const mailbox = filled("a", "b", "c", "d");
    const reader = mailbox[Symbol.asyncIterator]();
    const seen: (string | undefined)[] = [];
    for (let i = 0; i < 2; i++) seen.push((await reader.next()).value);
    for (const item of ["E", "F", "G"]) mailbox.push(item);
    mailbox.close();
    for (let next = await reader.next(); !next.done; next = await reader.next()) seen.push(next.value);
    expect(seen).toEqual(["(1 lost)", "b", "(2 lost)", "E", "F", "G"]);
  });

  test("what is read already is never lost again, and the oldest is still found after it was cut off", async () => {
    const mailbox = new Mailbox<string>({ ...bounded, limit: 2000 });
    const reader = mailbox[Symbol.asyncIterator]();
    for (let i = 0; i < 2000; i++) mailbox.push(i % 2 ? `a${i}` : `A${i}`);
    mailbox.push("Z");
    for (let i = 0; i < 1500; i++) await reader.next();
    for (let i = 0; i < 2500; i++) mailbox.push(`Y${i}`);
    mailbox.close();
    const rest: string[] = [];
    for (let next = await reader.next(); !next.done; next = await reader.next()) rest.push(next.value);
    const kept = rest.filter((item) => /^[AYZ]/.test(item));
    expect(kept).toHaveLength(250 + 1 + 2500);
    expect(rest.filter((item) => /^a/.test(item))).toEqual([]);
    expect(rest[0]).toBe("(250 lost)");
  });

  test("a reader that never reads costs a bounded number of items, and each push looks at few of them", () => {
    let looks = 0;
    const droppable = (item: string) => {
      looks += 1;
      return item === "live";
    };
    const mailbox = new Mailbox<string>({ droppable });
    for (let i = 0; i < 100_000; i++) mailbox.push("live");
    expect(mailbox.size).toBe(1024);
    for (let i = 0; i < 5000; i++) mailbox.push("kept");
    looks = 0;
    for (let i = 0; i < 5000; i++) mailbox.push("live");
    expect(mailbox.size).toBe(5000);
    expect(looks).toBeLessThan(20_000);
  });
});
