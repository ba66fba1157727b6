// The content part of the file store: uploads come in beside the sessions (incoming.ts) and are linked to their place by the
// change that writes their row (content.ts), so both become visible together.

import { BoughError } from "../../base/errors.ts";
import { failpoint } from "../../base/failpoint.ts";
import type { JsonObject } from "../../base/json.ts";
import {
  type BranchRef,
  type ByteRange,
  type ContentRecord,
  type ContentStore,
  type ContentWriter,
  clampRange,
  type NewContentRow,
  refuse,
} from "../../log/index.ts";
import type { Change } from "./change.ts";
import {
  deleteContent,
  findContent,
  listContent,
  putContent,
  readAsset,
  referredContent,
  updateContent,
} from "./content.ts";
import type { Disk } from "./disk.ts";
import type { Incoming, IncomingFile } from "./incoming.ts";
import { lineageOf } from "./reading.ts";
import type { Sessions } from "./sessions.ts";
import type { BranchState, StoredContent } from "./state.ts";

/** What the content needs of its store. */
export interface FileContentParts {
  readonly disk: Disk;
  readonly sessions: Sessions;
  readonly incoming: Incoming;
  change<T>(decide: (change: Change) => T): Promise<T>;
  look<T>(see: () => T): Promise<T>;
  /** A look at a branch whose ancestors are loaded. */
  through<T>(ref: BranchRef, see: (branch: BranchState) => T): Promise<T>;
  /** Runs a call that close() waits for; `store_closed`. */
  steps<T>(call: () => Promise<T>): Promise<T>;
}

export class FileContent implements ContentStore {
  readonly #parts: FileContentParts;

  constructor(parts: FileContentParts) {
    this.#parts = parts;
  }

  async write({ sessionId, branchId }: BranchRef): Promise<ContentWriter> {
    const { sessions, incoming, look } = this.#parts;
    const ref = { sessionId, branchId };
    await look(() => void sessions.getBranch(ref));
    return new FileUpload(this.#parts, ref, incoming.open());
  }

  async get(ref: BranchRef, contentId: string): Promise<ContentRecord | undefined> {
    const found = await this.#find(ref, contentId);
    return found && structuredClone(found.record);
  }

  async *read({ sessionId, branchId }: BranchRef, contentId: string, range?: ByteRange): AsyncGenerator<Uint8Array> {
    const { disk, sessions, steps } = this.#parts;
    const ref = { sessionId, branchId };
    const found = await this.#find(ref, contentId);
    if (!found) throw refuse.contentNotFound(ref, contentId);
    const pieces = readAsset(disk, sessions.pathOf(sessionId), found, clampRange(range, found.record.size));
    try {
      for (;;) {
        const { done, value } = await steps(async () => pieces.next());
        if (done) return;
        yield value;
      }
    } catch (error) {
      // It may have been deleted while it was read.
      if (BoughError.is(error, "store_closed") || (await this.#find(ref, contentId))) throw error;
      throw refuse.contentNotFound(ref, contentId);
    }
  }

  list({ sessionId, branchId }: BranchRef): Promise<ContentRecord[]> {
    const { sessions, steps, through } = this.#parts;
    const ref = { sessionId, branchId };
    return steps(() => through(ref, (branch) => listContent(lineageOf(sessions, branch))));
  }

  async update({ sessionId, branchId }: BranchRef, contentId: string, patch: JsonObject): Promise<ContentRecord> {
    const { sessions, change } = this.#parts;
    const ref = { sessionId, branchId };
    const info = structuredClone(patch);
    const found = await this.#find(ref, contentId);
    if (!found) throw refuse.contentNotFound(ref, contentId);
    const owner = { sessionId, branchId: found.record.branchId };
    return change((making) => {
      const record = updateContent(sessions, owner, contentId, info, making);
      if (!record) throw refuse.contentNotFound(ref, contentId);
      return structuredClone(record);
    });
  }

  delete({ sessionId, branchId }: BranchRef, contentId: string): Promise<boolean> {
    const ref = { sessionId, branchId };
    return this.#parts.change((change) => deleteContent(this.#parts.sessions, ref, contentId, change));
  }

  usage(sessionId: string): Promise<number> {
    return this.#parts.look(() => {
      const session = this.#parts.sessions.find(sessionId);
      if (!session) throw refuse.sessionNotFound(sessionId);
      return [...referredContent(session).values()].reduce((sum, { record }) => sum + record.size, 0);
    });
  }

  #find({ sessionId, branchId }: BranchRef, contentId: string): Promise<StoredContent | undefined> {
    const { sessions, steps, through } = this.#parts;
    const ref = { sessionId, branchId };
    return steps(() => through(ref, (branch) => findContent(lineageOf(sessions, branch), contentId)));
  }
}

class FileUpload implements ContentWriter {
  readonly #parts: FileContentParts;
  readonly #ref: BranchRef;
  readonly #file: IncomingFile;

  constructor(parts: FileContentParts, ref: BranchRef, file: IncomingFile) {
    this.#parts = parts;
    this.#ref = ref;
    this.#file = file;
  }

  add(chunk: Uint8Array): Promise<void> {
    return this.#parts.steps(() => this.#file.add(chunk));
  }

  async finish() {
    const { id, size } = await this.#parts.steps(() => this.#file.finish());
    return { id, size };
  }

  async commit({ mediaType, name, info = {}, seq }: NewContentRow): Promise<ContentRecord> {
    const { sessions, incoming, change, steps } = this.#parts;
    const row = structuredClone({ mediaType, name, info, seq });
    const brought = await steps(() => this.#file.finish());
    try {
      const put = (making: Change) => structuredClone(putContent(sessions, this.#ref, { ...row, ...brought }, making));
      const record = await change(put);
      failpoint("content.row");
      incoming.done(this.#file);
      return record;
    } catch (error) {
      if (BoughError.is(error, "store_read_only")) incoming.leave(this.#file);
      throw error;
    }
  }

  async abort(): Promise<void> {
    this.#parts.incoming.done(this.#file);
  }
}
