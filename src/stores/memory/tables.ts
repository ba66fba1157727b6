// The tables of the memory store, and the few operations on them that are worth a name.

import { type JsonObject, searchText } from "../../base/json.ts";
import {
  type BranchRecord,
  type CheckpointRecord,
  type ContentRecord,
  type NewBranch,
  type NewEvent,
  type RunClaim,
  refuse,
  type Segment,
  type SessionRecord,
  type StoredEvent,
} from "../../log/index.ts";

/** Bytes of a session: in chunks, or outside under a key. */
export interface MemoryBytes {
  readonly no: string;
  readonly key: string | undefined;
  readonly chunks: Uint8Array[];
  size: number;
  touchedAt: number;
}

export interface MemoryBranch {
  record: BranchRecord;
  parent: MemoryBranch | undefined;
  /** Own facts; the first has sequence number (fork point + 1). */
  events: StoredEvent[];
  byId: Map<string, StoredEvent>;
  claim: RunClaim | undefined;
  checkpoints: Map<string, CheckpointRecord>;
  /** By `to`, ascending. */
  segments: Segment[];
  contents: Map<string, ContentRecord>;
}

export interface MemorySession {
  record: SessionRecord;
  branches: Map<string, MemoryBranch>;
  /** By content id. */
  bytes: Map<string, MemoryBytes>;
  /** By their number. */
  uploads: Map<string, MemoryBytes>;
}

export function addBranch(
  session: MemorySession,
  input: NewBranch,
  parent: MemoryBranch | undefined,
  forkSeq: number | undefined,
  now: number,
): MemoryBranch {
  const base = forkSeq ?? 0;
  const branch: MemoryBranch = {
    record: {
      sessionId: session.record.id,
      branchId: input.id,
      createdAt: now,
      activeAt: now,
      seq: base,
      ...(parent && { parent: { branchId: parent.record.branchId, seq: base } }),
      header: structuredClone(input.header),
    },
    parent,
    events: [],
    byId: new Map(),
    claim: undefined,
    checkpoints: new Map(),
    segments: [],
    contents: new Map(),
  };
  pushEvents(branch, input.events);
  branch.record = { ...branch.record, seq: base + input.events.length };
  session.branches.set(input.id, branch);
  return branch;
}

export function pushEvents(branch: MemoryBranch, events: readonly NewEvent[]): void {
  let seq = branch.record.seq;
  for (const { id, data } of events) {
    const event = { seq: ++seq, id, data };
    branch.events.push(event);
    branch.byId.set(id, event);
  }
}

/** The facts from…to (inclusive), each taken from the branch of the lineage that owns it. */
export function collect(branch: MemoryBranch, from: number, to: number): StoredEvent[] {
  const pieces: StoredEvent[][] = [];
  let end = to;
  for (let at: MemoryBranch | undefined = branch; at && end >= from; at = at.parent) {
    const base = at.record.parent?.seq ?? 0;
    if (end <= base) continue;
    pieces.push(at.events.slice(Math.max(from - base - 1, 0), end - base));
    end = base;
  }
  return pieces.reverse().flat();
}

export function checkPosition(branch: MemoryBranch, seq: number): void {
  const { record } = branch;
  if (!Number.isInteger(seq) || seq < 0 || seq > record.seq) throw refuse.notOnBranch(record, seq, record.seq);
}

export function hasText(metadata: JsonObject, key: string, text: string): boolean {
  return Object.hasOwn(metadata, key) && searchText(metadata[key]!) === text;
}
