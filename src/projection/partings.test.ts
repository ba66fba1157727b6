// The oracle knows the messages: two branches part where their messages first differ, and a version is whoever has the same one.

import fc from "fast-check";
import { expect, test } from "vitest";
import { type Parting, type PartingBranch, partings } from "./partings.ts";
import type { Revert } from "./view.ts";

interface Row extends PartingBranch {
  readonly reverts: Revert[];
}

/** A session that knows what its branches say, at every position of their logs. */
class Session {
  readonly rows: Row[] = [];
  /** What a branch says after each fact of its log, from position 0 on. */
  readonly #logs = new Map<string, (readonly string[])[]>();
  #time = 0;

  constructor() {
    this.#logs.set("main", [[]]);
    this.#add({ id: "main" });
  }

  messages(id: string): readonly string[] {
    return this.#logs.get(id)!.at(-1)!;
  }

  say(id: string, many = 1): void {
    for (let i = 0; i < many; i++) this.#write(id, [...this.messages(id), `m${++this.#time}`]);
  }

  revert(id: string, keep: number): void {
    const left = this.messages(id).slice(0, keep);
    this.#write(id, left);
    const seq = this.#logs.get(id)!.length - 1;
    this.#row(id).reverts.push({ seq, messageCount: left.length, ...(left.length > 0 && { messageId: left.at(-1)! }) });
  }

  /** A fork of everything up to a position of the log, which may be one that was undone since. */
  fork(id: string, newId: string, { seq, hidden = false }: { seq: number; hidden?: boolean }): void {
    const log = this.#logs.get(id)!.slice(0, seq + 1);
    const shared = log.at(-1)!;
    this.#logs.set(newId, [...log, shared]);
    this.#add({
      id: newId,
      forkedFrom: id,
      forkedAtSeq: seq,
      forkedAtMessageIndex: shared.length - 1,
      forkedAtMessageId: shared.at(-1),
      ...(hidden && { visibility: "hidden" as const }),
    });
  }

  /** At the last position at which the branch has these messages, as forks by message are. */
  forkAt(id: string, newId: string, keep: number): void {
    const wanted = this.messages(id).slice(0, keep).join();
    const seq = this.#logs.get(id)!.findLastIndex((messages) => messages.join() === wanted);
    this.fork(id, newId, { seq });
  }

  length(id: string): number {
    return this.#logs.get(id)!.length - 1;
  }

  #add(row: Omit<Row, "reverts" | "lastActivity" | "messageCount">): void {
    this.rows.push({ ...row, reverts: [], lastActivity: ++this.#time, messageCount: this.messages(row.id).length });
  }

  #write(id: string, messages: readonly string[]): void {
    this.#logs.get(id)!.push(messages);
    Object.assign(this.#row(id), { messageCount: messages.length, lastActivity: ++this.#time });
  }

  #row(id: string): Row {
    return this.rows.find((row) => row.id === id)!;
  }
}

/** By the messages: at each index, the groups of branches that agree up to it and have a message there, by that message. */
function byMessages(session: Session, here: string) {
  const path = session.messages(here);
  const shown = session.rows.filter(({ visibility, id }) => visibility !== "hidden" || id === here);
  return path.flatMap((message, index) => {
    const before = path.slice(0, index).join();
    const groups = new Map<string, string[]>();
    for (const { id } of shown) {
      const messages = session.messages(id);
      if (messages.length <= index || messages.slice(0, index).join() !== before) continue;
      groups.set(messages[index]!, [...(groups.get(messages[index]!) ?? []), id]);
    }
    if (groups.size < 2) return [];
    const newest = (ids: readonly string[]) =>
      session.rows.filter(({ id }) => ids.includes(id)).reduce((a, b) => (b.lastActivity >= a.lastActivity ? b : a)).id;
    const versions = [...groups.values()].map((ids) => ({ branchId: ids[0]!, newest: newest(ids) }));
    return [{ index, versions, current: [...groups.keys()].indexOf(message) }];
  });
}

/** Without the ways that have no message yet. */
function filled(found: readonly Parting[], messages: readonly string[]) {
  return found.flatMap(({ index, versions, current }) => {
    const kept = versions.filter(({ isEmpty }) => !isEmpty);
    if (kept.length < 2 || index >= messages.length) return [];
    const ways = kept.map(({ branchId, newest }) => ({ branchId, newest }));
    return [{ index, versions: ways, current: kept.indexOf(versions[current]!) }];
  });
}

const step = fc.record({
  kind: fc.constantFrom("say", "say", "fork", "forkBack", "revert", "hide"),
  branch: fc.nat(20),
  at: fc.double({ min: 0, max: 1, noNaN: true }),
});

function play(steps: readonly { kind: string; branch: number; at: number }[]): Session {
  const session = new Session();
  for (const [i, { kind, branch, at }] of steps.entries()) {
    const { id } = session.rows[branch % session.rows.length]!;
    const keep = Math.round(at * session.messages(id).length);
    if (kind === "say") session.say(id);
    else if (kind === "revert") session.revert(id, keep);
    else if (kind === "fork") session.forkAt(id, `b${i}`, keep);
    else session.fork(id, `b${i}`, { seq: Math.round(at * session.length(id)), hidden: kind === "hide" });
  }
  return session;
}

test("whatever was forked, undone and brought back, versions are those that the messages tell", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const session = play(steps);
      for (const { id } of session.rows) {
        expect(filled(partings(session.rows, id), session.messages(id))).toEqual(byMessages(session, id));
      }
    }),
    { numRuns: 400 },
  );
});

test("every branch that shows a message tells the same versions of it (Partings-1)", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const session = play(steps.map((each) => ({ ...each, kind: each.kind === "hide" ? "say" : each.kind })));
      for (const { id } of session.rows) {
        const path = session.messages(id);
        for (const parting of partings(session.rows, id)) {
          if (parting.index >= path.length) continue;
          const same = session.rows.filter((row) => session.messages(row.id)[parting.index] === path[parting.index]);
          for (const other of same) expect(partings(session.rows, other.id)).toContainEqual(parting);
          const { newest } = parting.versions[parting.current]!;
          expect(partings(session.rows, newest)).toContainEqual(parting);
          expect(parting.afterMessageId).toBe(path[parting.index - 1]);
        }
      }
    }),
    { numRuns: 200 },
  );
});

test("an answer that is regenerated twice, the second time from the first, is 1/3, 2/3, 3/3", () => {
  const session = new Session();
  session.say("main", 2);
  session.forkAt("main", "x", 1);
  session.say("x");
  session.forkAt("x", "y", 1);
  session.say("y");
  for (const [current, id] of ["main", "x", "y"].entries()) {
    const [parting, ...more] = partings(session.rows, id);
    expect(parting).toMatchObject({ index: 1, current, afterMessageId: session.messages("main")[0] });
    expect(parting!.versions.map(({ branchId }) => branchId)).toEqual(["main", "x", "y"]);
    expect(more).toEqual([]);
  }
});

test("forks further on don't count where the path has left before, and all count on the branch itself", () => {
  const session = new Session();
  session.say("main", 6);
  session.forkAt("main", "early", 2);
  session.say("early");
  session.forkAt("main", "late", 4);
  session.say("late");
  const at = (id: string) => partings(session.rows, id).map(({ index, current }) => [index, current]);
  expect(at("main")).toEqual([
    [2, 0],
    [4, 0],
  ]);
  expect(at("early")).toEqual([[2, 1]]);
  expect(at("late")).toEqual([
    [2, 0],
    [4, 1],
  ]);
  expect(partings(session.rows, "early")[0]!.versions[0]!.newest).toBe("late");
});

test("what was undone and brought back as a branch parts where it was undone, not where it was forked", () => {
  const session = new Session();
  session.say("main", 4);
  const undone = session.length("main");
  session.revert("main", 2);
  session.fork("main", "back", { seq: undone });
  session.say("main", 2);
  expect(partings(session.rows, "back")).toMatchObject([{ index: 2, current: 1 }]);
  expect(partings(session.rows, "main")).toMatchObject([{ index: 2, current: 0 }]);
});

test("a fork without a message of its own is a version that is empty, until a turn is open on it", () => {
  const session = new Session();
  session.say("main", 2);
  session.forkAt("main", "x", 1);
  expect(partings(session.rows, "main")).toMatchObject([
    { index: 1, versions: [{ isEmpty: false }, { isEmpty: true }] },
  ]);
  Object.assign(session.rows[1]!, { openTurnId: "t" });
  expect(partings(session.rows, "x")).toMatchObject([{ index: 1, versions: [{ isEmpty: false }, { isEmpty: false }] }]);
});

test("rank says which branch stands for a version: the one looked at last, for example", () => {
  const session = new Session();
  session.say("main", 4);
  session.forkAt("main", "x", 1);
  session.say("x", 3);
  session.forkAt("x", "y", 3);
  session.say("y");
  const visited = new Map([["x", 1]]);
  const newest = (rank?: (branch: Row) => number) =>
    partings(session.rows, "main", rank && { rank })[0]!.versions[1]!.newest;
  expect(newest()).toBe("y");
  expect(newest(({ id }) => visited.get(id) ?? 0)).toBe("x");
});

test("a branch that is not in the list has no partings", () => {
  expect(partings(new Session().rows, "nowhere")).toEqual([]);
});
