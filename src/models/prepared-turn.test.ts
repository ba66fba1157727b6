import fc from "fast-check";
import { expect, test } from "vitest";
import type { Message } from "../events/index.ts";
import type { PromptMessage } from "./port.ts";
import { prepareTurn } from "./prepared-turn.ts";

const messageOf = (id: number): Message => {
  const role = id % 3 === 0 ? "tool" : "user";
  const content = [
    { type: "text", text: `${id}`, ...(id % 5 === 0 && { providerOptions: { a: { cacheControl: {} } } }) },
  ];
  return { id: `m${id}`, role, content, createdAt: id, turnId: "t" } as unknown as Message;
};

/** Counts what is prepared; a message of every seventh id gives nothing. */
function counted() {
  const counts = { prepared: 0, hashed: 0 };
  const prepare = (message: Message, into: PromptMessage[]) => {
    counts.prepared++;
    if (Number(message.id.slice(1)) % 7 !== 0) into.push(message as unknown as PromptMessage);
  };
  const next = (before: string, message: PromptMessage) => {
    counts.hashed++;
    return `${before}/${(message as unknown as Message).id}`;
  };
  return { counts, prepare, next };
}

test("a turn that grows costs what is new of it", () => {
  const { counts, prepare, next } = counted();
  const turn = [messageOf(1)];
  for (let id = 2; id <= 1000; id++) {
    turn.push(messageOf(id));
    prepareTurn(turn, prepare, next).hash("");
  }
  expect(counts.prepared).toBe(1000);
  expect(counts.hashed).toBeLessThanOrEqual(1000);
});

test("whatever happens to a turn, its part is that of the same turn prepared alone, also a part made before", () => {
  const change = fc.record({ at: fc.nat(30), id: fc.integer({ min: 1, max: 60 }), kind: fc.nat(4) });
  fc.assert(
    fc.property(fc.array(change, { maxLength: 40 }), (changes) => {
      const { prepare, next } = counted();
      const first = messageOf(1);
      const turn = [first];
      const parts: { part: ReturnType<typeof prepareTurn>; alone: ReturnType<typeof prepareTurn> }[] = [];
      for (const { at, id, kind } of changes) {
        if (kind < 3) turn.push(messageOf(id));
        else if (kind === 3 && at > 0) turn.splice(at, 1, messageOf(id));
        else turn.length = Math.max(1, Math.min(turn.length, at));
        const part = prepareTurn(turn, prepare, next);
        const alone = prepareTurn([{ ...first }, ...turn.slice(1)], prepare, next);
        parts.push({ part, alone });
        const { hash, ...rest } = part;
        const { hash: _, ...expected } = alone;
        expect(rest).toEqual(expected);
        if (id % 2) expect(hash("x")).toBe(alone.hash("x"));
      }
      for (const { part, alone } of parts) expect(part.hash("y")).toBe(alone.hash("y"));
    }),
  );
});
