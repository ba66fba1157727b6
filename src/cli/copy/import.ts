// Reads an export as a source to copy from. A session is yielded once its end was read and its hash matches. A hash
// proves nothing about the author, so what the session API refuses is refused here too, and so are ids that a server keeps
// for itself and its tenants.

import * as v from "valibot";
import { BoughError } from "../../base/errors.ts";
import { checkId } from "../../base/ids.ts";
import { checkJson, factLimits, type JsonObject, metadataLimits } from "../../base/json.ts";
import { codec, type Fact, type UnknownFact } from "../../events/index.ts";
import type { ContentRecord } from "../../log/content.ts";
import type {
  BranchRecord,
  BranchRef,
  CheckpointRecord,
  NewEvent,
  ReadOptions,
  SessionRecord,
  StoredEvent,
} from "../../log/store.ts";
import { digestSession } from "./digest.ts";
import { exportFormat } from "./export.ts";
import { baseOf, type Source } from "./source.ts";

const id = v.pipe(v.string(), v.nonEmpty());
const whole = v.pipe(v.number(), v.integer(), v.minValue(0));
const object = v.custom<JsonObject>((value) => typeof value === "object" && value !== null && !Array.isArray(value));

const lineSchema = v.variant("type", [
  v.object({
    type: v.literal("session"),
    format: whole,
    id,
    createdAt: whole,
    activeAt: whole,
    version: whole,
    metadata: object,
    state: object,
  }),
  v.object({
    type: v.literal("branch"),
    branchId: id,
    createdAt: whole,
    activeAt: whole,
    seq: whole,
    parent: v.optional(v.object({ branchId: id, seq: whole })),
    header: object,
  }),
  v.object({ type: v.literal("fact"), seq: whole, id, data: v.string() }),
  v.object({ type: v.literal("checkpoint"), id, seq: whole, createdAt: whole, data: object }),
  v.object({
    type: v.literal("content"),
    id,
    size: whole,
    mediaType: v.string(),
    name: v.optional(v.string()),
    createdAt: whole,
    seq: v.optional(whole, 0),
    info: v.optional(object, {}),
    bytes: v.pipe(v.string(), v.base64()),
  }),
  v.object({ type: v.literal("end"), sha256: v.string() }),
]);

type Line = v.InferOutput<typeof lineSchema>;

interface StagedBranch {
  record: BranchRecord;
  readonly facts: StoredEvent[];
  /** Oldest first. */
  readonly checkpoints: CheckpointRecord[];
  readonly contents: { record: ContentRecord; bytes: Uint8Array }[];
}

export interface ImportOptions {
  /** Accepts ids that begin with "~", which belong to a server's tenants and stored agents. */
  readonly allowNamespaced?: boolean;
}

/** One session of a file, held in memory. */
export class StagedSession implements Source {
  #record: SessionRecord;
  readonly #checkName: (id: string, what: string) => void;
  readonly #branches = new Map<string, StagedBranch>();

  constructor(record: SessionRecord, { allowNamespaced = false }: ImportOptions = {}) {
    this.#checkName = allowNamespaced ? () => {} : refuseNamespaced;
    this.#checkName(record.id, "session");
    this.#record = record;
  }

  get record(): SessionRecord {
    return this.#record;
  }

  add(line: Exclude<Line, { type: "session" | "end" }>): void {
    if (line.type === "branch") {
      const { type: _, parent, ...row } = line;
      checkId(row.branchId, "branch");
      this.#checkName(row.branchId, "branch");
      checkJson(row.header, "The header", factLimits);
      const record = { sessionId: this.record.id, ...row, ...(parent && { parent }) };
      this.#branches.set(row.branchId, { record, facts: [], checkpoints: [], contents: [] });
      return;
    }
    const branch = [...this.#branches.values()].at(-1);
    if (!branch) throw new Error(`a ${line.type} before any branch`);
    if (line.type === "fact") {
      const { seq, id, data } = line;
      const { agentId } = codec.decode({ seq, id, data }) as { agentId?: unknown };
      this.#checkName(String(agentId), "agent");
      branch.facts.push({ seq, id, data });
    } else if (line.type === "checkpoint") {
      const { type: _, ...checkpoint } = line;
      branch.checkpoints.push(checkpoint);
    } else {
      const { type: _, bytes, name, ...row } = line;
      const record = { ...row, branchId: branch.record.branchId, ...(name !== undefined && { name }) };
      branch.contents.push({ record, bytes: Buffer.from(bytes, "base64") });
    }
  }

  replaceState(state: JsonObject): void {
    this.#record = { ...this.#record, state };
  }

  /** The branch's own facts. */
  factsOf(ref: BranchRef): (Fact | UnknownFact)[] {
    return this.#branch(ref).facts.map(codec.decode);
  }

  /** Adds facts behind those of the file. */
  extend(ref: BranchRef, events: readonly NewEvent[], header: JsonObject): void {
    const branch = this.#branch(ref);
    let { seq } = branch.record;
    for (const { id, data } of events) branch.facts.push({ seq: ++seq, id, data });
    branch.record = { ...branch.record, seq, header };
  }

  async getSession() {
    return this.record;
  }

  async listBranches() {
    return [...this.#branches.values()].map(({ record }) => record);
  }

  /** Own facts only; callers need no others. */
  async read(ref: BranchRef, { after = 0, limit = 1000 }: ReadOptions = {}) {
    const { facts, record } = this.#branch(ref);
    const start = after - baseOf(record);
    return facts.slice(start, start + limit);
  }

  async listCheckpoints(ref: BranchRef) {
    return [...this.#branch(ref).checkpoints].reverse();
  }

  readonly content: Source["content"] = {
    list: async (ref) => this.#branch(ref).contents.map(({ record }) => record),
    get: async (ref, contentId) => this.#content(ref, contentId)?.record,
    read: async function* (this: StagedSession, ref: BranchRef, contentId: string) {
      const content = this.#content(ref, contentId);
      if (content) yield content.bytes;
    }.bind(this),
  };

  #content(ref: BranchRef, contentId: string) {
    return this.#branch(ref).contents.find(({ record }) => record.id === contentId);
  }

  #branch(ref: BranchRef): StagedBranch {
    return this.#branches.get(ref.branchId)!;
  }
}

/** Throws `store_corrupt` if a line is malformed, the file is truncated, or a hash is wrong. */
export async function* importSessions(
  lines: AsyncIterable<string>,
  options: ImportOptions = {},
): AsyncGenerator<StagedSession> {
  let session: StagedSession | undefined;
  let number = 0;
  for await (const text of lines) {
    number += 1;
    if (text.trim() === "") continue;
    const line = parseLine(text, number);
    if (line.type === "session") {
      if (session) throw broken(number, `session "${session.record.id}" has no end line`);
      session = begin(line, number, options);
    } else if (!session) {
      throw broken(number, `a ${line.type} before any session`);
    } else if (line.type === "end") {
      yield await end(session, line.sha256, number);
      session = undefined;
    } else {
      session.add(line);
    }
  }
  if (session) throw broken(number, `session "${session.record.id}" has no end line: the file is truncated`);
}

function parseLine(text: string, number: number): Line {
  try {
    return v.parse(lineSchema, JSON.parse(text));
  } catch (cause) {
    throw broken(number, (cause as Error).message);
  }
}

function begin(
  { type: _, format, ...record }: Extract<Line, { type: "session" }>,
  number: number,
  options: ImportOptions,
): StagedSession {
  if (format > exportFormat)
    throw broken(number, `format ${format} is newer than this version of Bough, which supports up to ${exportFormat}`);
  checkId(record.id, "session");
  checkJson(record.metadata, "The metadata", metadataLimits);
  checkJson(record.state, "The state", metadataLimits);
  return new StagedSession(record, options);
}

function refuseNamespaced(id: string, what: string): void {
  if (!id.startsWith("~")) return;
  const message = `The ${what} id "${id}" begins with "~". Such ids belong to a server's tenants. If the file is your own, import it with --allow-namespaced.`;
  throw new BoughError("invalid_argument", message, { data: { what, id } });
}

async function end(session: StagedSession, sha256: string, number: number): Promise<StagedSession> {
  if ((await digestSession(session, session.record.id)).sha256 === sha256) return session;
  throw broken(
    number,
    `the hash of session "${session.record.id}" is wrong: the file is damaged, or the session was in use`,
  );
}

function broken(number: number, why: string): BoughError {
  return new BoughError("store_corrupt", `Line ${number} can't be imported: ${why}.`, { data: { line: number } });
}
