import { BoughError } from "../../base/errors.ts";
import type { ContentRecord, ContentStore } from "../../log/content.ts";
import type { BranchRecord, SegmentCache, SessionRecord, Store, StoredEvent } from "../../log/store.ts";

/** The source of a copy: a store or an exported file. */
export interface Source extends Pick<Store, "getSession" | "listBranches" | "read" | "listCheckpoints"> {
  readonly content?: Pick<ContentStore, "list" | "get" | "read"> | undefined;
  readonly segments?: Pick<SegmentCache, "get"> | undefined;
}

/**
 * A branch that exists only while a session is copied: it replaces a first branch that was deleted since, and it is
 * created and deleted to set the time of the session's last activity. Never part of the copy.
 */
export const placeholderId = "bough.copy.placeholder";

const pageSize = 500;

export async function needSession(source: Source, sessionId: string): Promise<SessionRecord> {
  const record = await source.getSession(sessionId);
  if (record) return record;
  throw new BoughError("session_not_found", `There is no session "${sessionId}".`, { data: { sessionId } });
}

/** The branches to copy, parents before their forks. */
export async function branchesOf(source: Source, sessionId: string): Promise<readonly BranchRecord[]> {
  return (await source.listBranches(sessionId)).filter(({ branchId }) => branchId !== placeholderId);
}

/** Where the branch's own facts begin. */
export function baseOf(branch: BranchRecord): number {
  return branch.parent?.seq ?? 0;
}

/** The branch's own facts, in pages, up to where it was when `branch` was read. */
export async function* ownFacts(source: Source, branch: BranchRecord): AsyncGenerator<readonly StoredEvent[]> {
  for (let after = baseOf(branch); after < branch.seq; ) {
    const page = await source.read(branch, { after, before: branch.seq + 1, limit: pageSize });
    const last = page.at(-1);
    if (!last) {
      const { sessionId, branchId } = branch;
      const message = `Branch "${branchId}" of session "${sessionId}" should end at ${branch.seq}, but has no facts after ${after}.`;
      throw new BoughError("store_corrupt", message, { data: { sessionId, branchId } });
    }
    yield page;
    after = last.seq;
  }
}

/**
 * Content that the branch's own facts refer to, not its ancestors'; empty if the source stores no content. What providers know it
 * by stays behind: that is good for one account only, and a file that is imported could name somebody else's.
 */
export async function ownContent({ content }: Source, branch: BranchRecord): Promise<readonly ContentRecord[]> {
  const own = ((await content?.list(branch)) ?? []).filter(({ branchId }) => branchId === branch.branchId);
  return own.map(({ info: { provider: _, ...info }, ...record }) => ({ ...record, info }));
}
