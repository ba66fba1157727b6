import type { ContentRecord } from "../log/content.ts";
import type {
  BranchRecord,
  CheckpointRecord,
  RunClaim,
  Segment,
  SessionRecord,
  Store,
  StoredEvent,
} from "../log/store.ts";
import { listAllSessions, readAll } from "./check-log.ts";
import { getBytes } from "./content.ts";

/** A branch with everything in it. */
export interface BranchSnapshot {
  record: BranchRecord;
  events: StoredEvent[];
  checkpoints: readonly CheckpointRecord[];
  segment: Segment | undefined;
  contents: { record: ContentRecord; bytes: string }[];
}

/** A store with everything in it. */
export interface StoreSnapshot {
  /** In the order of the listing. */
  sessions: { record: SessionRecord; branches: BranchSnapshot[] }[];
  /** By claim time, ties by session and branch. */
  runs: RunClaim[];
}

/** Reads everything that the port shows of a store, to compare it with a later state or with another store. */
export async function snapshotStore(store: Store): Promise<StoreSnapshot> {
  const sessions = [];
  for (const record of await listAllSessions(store)) {
    const branches: BranchSnapshot[] = [];
    for (const branch of await store.listBranches(record.id)) branches.push(await snapshotBranch(store, branch));
    sessions.push({ record, branches });
  }
  return { sessions, runs: sortRuns(await store.listRuns()) };
}

async function snapshotBranch(store: Store, record: BranchRecord): Promise<BranchSnapshot> {
  const contents = [];
  for (const { id } of (await store.content?.list(record)) ?? []) {
    const content = store.content && (await getBytes(store, record, id));
    if (content) contents.push({ record: content.record, bytes: Buffer.from(content.bytes).toString("hex") });
  }
  return {
    record,
    events: await readAll(store, record),
    checkpoints: await store.listCheckpoints(record),
    segment: await store.segments?.get(record, record.seq),
    contents,
  };
}

/** The port orders claims by time only; what was claimed in the same millisecond is put in an order here. */
export function sortRuns(runs: readonly RunClaim[]): RunClaim[] {
  const keyOf = (run: RunClaim) => JSON.stringify([run.sessionId, run.branchId]);
  return [...runs].sort((a, b) => a.claimedAt - b.claimedAt || (keyOf(a) < keyOf(b) ? -1 : 1));
}
