// What a random history is made of. A step says what to do in small numbers; only when it runs are they turned into ids,
// positions and epochs of what is there (mostly) or is not (sometimes), so that a shrunk history still makes sense.

import { createHash } from "node:crypto";
import fc from "fast-check";
import type { BranchRef, NewEvent, SessionQuery } from "../../src/log/index.ts";
import type { Call } from "./calls.ts";
import type { Model } from "./model.ts";

export type Step = { readonly do: string } & Readonly<Record<string, number | boolean>>;

/** What steps need to know besides the model. */
export interface Past {
  readonly model: Model;
  /** Every append that was asked for, whatever came of it. */
  readonly appends: { ref: BranchRef; events: readonly NewEvent[] }[];
  /** Every claim that was made, under the branch's ids (also those of an earlier branch with these ids). */
  readonly claims: { ref: BranchRef; epoch: number }[];
  count: number;
}

const sessionIds = ["s", "S", "__proto__"];
const branchIds = ["main", "Main", "caf\u00e9", "cafe\u0301", "..", "a/b", "constructor"];
const runIds = ["r", "R"];
const checkpointIds = ["c", "C", "constructor"];
const texts = ["x", "1", "%", "_", "true", "X", "10", "xy"];
const values = ["x", 1, "%", "xy", true, { a: ["'"] }, "10", "_"];
const contents = ["one", "two", "\u0000"].map((text) => {
  const bytes = new TextEncoder().encode(text);
  return { id: createHash("sha256").update(bytes).digest("hex"), bytes, mediaType: `text/${text.length}` };
});

const n = fc.nat({ max: 999 });
const few = (max: number) => fc.nat({ max });

function step(name: string, fields: Record<string, fc.Arbitrary<number | boolean>>): fc.Arbitrary<Step> {
  return fc.record({ do: fc.constant(name), ...fields }) as unknown as fc.Arbitrary<Step>;
}

const weighted: [number, fc.Arbitrary<Step>][] = [
  [2, step("createSession", { id: n, facts: few(3), twin: few(15), value: n })],
  [
    2,
    step("updateSession", { session: n, key: few(3), value: n, state: fc.boolean(), remove: few(3), version: few(5) }),
  ],
  [1, step("deleteSession", { session: n, gate: few(2) })],
  [7, step("createBranch", { session: n, id: n, parent: n, position: n, facts: few(2), twin: few(15), root: few(5) })],
  [2, step("deleteBranch", { branch: n, recursive: fc.boolean(), also: few(3), other: n })],
  [
    12,
    step("append", {
      branch: n,
      facts: few(4),
      expected: few(7),
      epoch: few(9),
      header: few(5),
      run: few(3),
      release: few(3),
    }),
  ],
  [6, step("appendAgain", { which: n, how: few(9), branch: n, expected: few(3), epoch: few(3) })],
  [5, step("claim", { branch: n, run: few(3), lease: few(2), over: few(5) })],
  [2, step("renewRun", { branch: n, claim: few(3), lease: few(2) })],
  [2, step("releaseRun", { branch: n, claim: few(3) })],
  [2, step("saveCheckpoint", { branch: n, id: few(2), position: n })],
  [1, step("deleteCheckpoints", { branch: n, id: few(2), also: few(2) })],
  [2, step("saveSegment", { branch: n, position: n })],
  [2, step("getSegment", { branch: n, position: n })],
  [2, step("putContent", { branch: n, which: few(2), name: few(1) })],
  [1, step("deleteContent", { branch: n, which: few(2) })],
  [4, step("read", { branch: n, after: n, before: n, limit: few(5), reverse: fc.boolean() })],
  [1, step("maintain", {})],
  [2, step("search", { key: few(3), text: n, limit: few(3), before: few(2) })],
  [4, step("advance", { by: few(3) })],
  [1, step("reopen", {})],
];

export const steps: fc.Arbitrary<Step> = fc.oneof(...weighted.map(([weight, arbitrary]) => ({ weight, arbitrary })));

const leases = [0, 10, 1000];
/** How far the clock goes: not at all, within a lease, to its very end, past all of them. */
export const advances = [0, 1, 10, 5000];

type Fields = Record<string, never> & Step;

const calls: Record<string, (past: Past, fields: Record<string, number> & Step) => Call> = {
  createSession(past, { id, facts, twin, value }) {
    const metadata = { k: values[value! % values.length] };
    const branch = { id: branchIds[value! % 2], header: { at: 0 }, events: twinned(freshFacts(past, facts!), twin!) };
    return call("createSession", { id: sessionIds[id! % sessionIds.length], metadata, state: {}, branch });
  },
  updateSession(past, { session, key, value, state, remove, version }) {
    const id = sessionId(past, session!);
    const patch = { [`k${key || ""}`]: remove === 0 ? null : values[value! % values.length] };
    const known = past.model.sessions.find((each) => each.id === id)?.version ?? 1;
    const options = version! < 2 ? { expectedVersion: known - version! } : {};
    return call("updateSession", id, state ? { state: patch } : { metadata: patch }, options);
  },
  deleteSession(past, { session, gate }) {
    // Most of the time it is one that is not there: a history that keeps losing everything finds little.
    return call("deleteSession", gate === 0 ? sessionId(past, session!) : "nobody");
  },
  createBranch(past, { session, id, parent, position, facts, twin, root }) {
    const inSession = sessionId(past, session!);
    const branches = past.model.sessions.find((each) => each.id === inSession)?.branches ?? [];
    const from = branches[parent! % Math.max(branches.length, 1)];
    const events = twinned(freshFacts(past, facts!), twin!);
    const branch = { id: branchIds[id! % branchIds.length], header: { forked: id! }, events };
    if (root === 0) return call("createBranch", inSession, branch);
    // One past the end now and then.
    const seq = from ? position! % (from.log.length + 2) : 0;
    return call("createBranch", inSession, { ...branch, parent: { branchId: from?.id ?? "nobody", seq } });
  },
  deleteBranch(past, { branch, recursive, also, other }) {
    const ref = refTo(past, branch!);
    const others = past.model.sessions.find(({ id }) => id === ref.sessionId)?.branches.map(({ id }) => id) ?? [];
    // One that is not there now and then; neighbours in the order of creation, so that parents go with their forks.
    const named = Array.from({ length: also! }, (_, i) => others[(other! + i) % (others.length + 1)] ?? "nobody");
    return call("deleteBranch", ref, { recursive, ...(also! > 0 && { also: named }) });
  },
  append(past, { branch, facts, expected, epoch, header, run, release }) {
    const ref = refTo(past, branch!);
    const options = {
      ...(expected! < 3 && { expectedSeq: newest(past, ref) - (expected === 2 ? 1 : 0) }),
      ...(epoch! < 4 && { epoch: epochOf(past, ref, epoch!) }),
      ...(epoch === 9 && { claim: { runId: runIds[run! % 2], owner: `o${run! >> 1}`, leaseMs: 10 } }),
      ...(header! < 4 && { header: { [`h${header! % 2}`]: header! < 2 ? past.count : null } }),
    };
    const released = release === 0 && { release: true };
    // Four is none at all.
    return call("append", ref, freshFacts(past, (facts! + 1) % 5), { ...options, ...released });
  },
  appendAgain(past, { which, how, branch, expected, epoch }) {
    const earlier = past.appends[which! % Math.max(past.appends.length, 1)];
    const ref = how === 9 ? refTo(past, branch!) : (earlier?.ref ?? refTo(past, branch!));
    const events = altered(past, earlier?.events ?? [], how!);
    const options = {
      ...(expected === 0 && { expectedSeq: 1 }),
      ...(epoch === 0 && { epoch: epochOf(past, ref, 2) }),
      header: { again: past.count },
    };
    return call("append", ref, events, options);
  },
  claim(past, { branch, run, lease, over }) {
    const ref = refTo(past, branch!);
    const claim = { runId: runIds[run! % 2], owner: `o${run! >> 1}`, leaseMs: leases[lease!] };
    const asked = over! < 3 ? { ...claim, over: epochOf(past, ref, over!) } : claim;
    return call("append", ref, freshFacts(past, 1), { claim: asked });
  },
  renewRun(past, { branch, claim, lease }) {
    const ref = refTo(past, branch!);
    return call("renewRun", ref, { epoch: epochOf(past, ref, claim!), leaseMs: leases[lease!] });
  },
  releaseRun(past, { branch, claim }) {
    const ref = refTo(past, branch!);
    return call("releaseRun", ref, { epoch: epochOf(past, ref, claim!) });
  },
  saveCheckpoint(past, { branch, id, position }) {
    const ref = refTo(past, branch!);
    const seq = position! % (newest(past, ref) + 2);
    return call("saveCheckpoint", ref, { id: checkpointIds[id!], seq, data: { position: position! } });
  },
  deleteCheckpoints: (past, { branch, id, also }) =>
    call("deleteCheckpoints", refTo(past, branch!), [checkpointIds[id!], checkpointIds[also!]]),
  saveSegment(past, { branch, position }) {
    const ref = refTo(past, branch!);
    const known = find(past, ref);
    // A segment is of the branch's own part of the log; a branch without one has nothing to save, so it asks instead.
    const own = known ? known.log.length - known.base : 1;
    if (known && own === 0) return call("getSegment", ref, position!);
    return call("saveSegment", ref, {
      to: (known?.base ?? 0) + 1 + (position! % own),
      lines: [`segment ${position}`, "second"],
    });
  },
  getSegment(past, { branch, position }) {
    const ref = refTo(past, branch!);
    return call("getSegment", ref, position! % (newest(past, ref) + 2));
  },
  putContent: (past, { branch, which, name }) =>
    call("putContent", refTo(past, branch!), { ...contents[which!], ...(name && { name: "a name" }) }),
  deleteContent: (past, { branch, which }) => call("deleteContent", refTo(past, branch!), contents[which!]!.id),
  read(past, { branch, after, before, limit, reverse }) {
    const ref = refTo(past, branch!);
    const end = newest(past, ref) + 2;
    return call("read", ref, {
      ...(after! % 3 > 0 && { after: after! % end }),
      ...(before! % 3 > 0 && { before: before! % end }),
      ...(limit! > 0 && { limit }),
      reverse,
    });
  },
  maintain: () => call("maintain"),
};

/** The call a step comes to, now. */
export function resolve(past: Past, fields: Step): Call {
  past.count += 1;
  return calls[fields.do]!(past, fields as Fields);
}

/** The search a step comes to, now. */
export function searchOf({ key, text, limit, before }: Step, now: number): SessionQuery {
  return {
    ...(key !== 3 && { metadata: { [`k${key || ""}`]: texts[Number(text) % texts.length]! } }),
    ...(Number(limit) > 0 && { limit: Number(limit) }),
    ...(Number(before) > 0 && { activeBefore: now - Number(before) + 1 }),
  };
}

function call(method: Call["method"], ...args: Call["args"]): Call {
  return { method, args };
}

function sessionId({ model }: Past, pick: number): string {
  const { length } = model.sessions;
  return length === 0 || pick % 12 === 11 ? sessionIds[pick % sessionIds.length]! : model.sessions[pick % length]!.id;
}

function refTo({ model }: Past, pick: number): BranchRef {
  const refs = model.sessions.flatMap(({ id, branches }) =>
    branches.map((branch) => ({ sessionId: id, branchId: branch.id })),
  );
  const anything = {
    sessionId: sessionIds[pick % sessionIds.length]!,
    branchId: branchIds[pick % branchIds.length]!,
  };
  return pick % 12 === 11 ? anything : (refs[pick % Math.max(refs.length, 1)] ?? anything);
}

function find({ model }: Past, ref: BranchRef) {
  const session = model.sessions.find((each) => each.id === ref.sessionId);
  return session?.branches.find((branch) => branch.id === ref.branchId);
}

function newest(past: Past, ref: BranchRef): number {
  return find(past, ref)?.log.length ?? 0;
}

/** 0 and 1: the newest epoch claimed on the branch; 2: the oldest; otherwise one that never was. */
function epochOf({ claims }: Past, ref: BranchRef, which: number): number {
  const own = claims.filter((claim) => claim.ref.sessionId === ref.sessionId && claim.ref.branchId === ref.branchId);
  return (which < 2 ? own.at(-1) : which === 2 ? own[0] : undefined)?.epoch ?? 0;
}

function freshFacts(past: Past, count: number): NewEvent[] {
  return Array.from({ length: count }, (_, i) => ({ id: `e${past.count}.${i}`, data: `{"n":${past.count + i}}` }));
}

function twinned(events: NewEvent[], twin: number): NewEvent[] {
  return twin === 0 && events.length > 0 ? [...events, events[0]!] : events;
}

/** An earlier append again: as it was (mostly), or almost. */
function altered(past: Past, events: readonly NewEvent[], how: number): readonly NewEvent[] {
  switch (how) {
    case 4:
      return events.slice(1);
    case 5:
      return [...events].reverse();
    case 6:
      return events.map((event) => ({ ...event, data: `${event.data} ` }));
    case 7:
      return [...events, ...freshFacts(past, 1)];
    case 8:
      return [...freshFacts(past, 1), ...events];
    default:
      return events;
  }
}
