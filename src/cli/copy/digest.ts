// Hashes of a session's parts, equal on two stores exactly when the copy is faithful. Not included: run slots
// (a copy holds none), segments (derived), and the times of last activity (see copy-session.ts).

import { createHash } from "node:crypto";
import { BoughError } from "../../base/errors.ts";
import type { JsonObject } from "../../base/json.ts";
import type { BranchRecord } from "../../log/store.ts";
import { branchesOf, needSession, ownContent, ownFacts, type Source } from "./source.ts";

export interface Counts {
  branches: number;
  facts: number;
  checkpoints: number;
  contents: number;
}

export interface SessionDigest extends Counts {
  readonly sessionId: string;
  /** The hash of everything, in hexadecimal. */
  readonly sha256: string;
  /** The hash of each part by its name, to report what differs. */
  readonly parts: ReadonlyMap<string, string>;
}

export function noCounts(): Counts {
  return { branches: 0, facts: 0, checkpoints: 0, contents: 0 };
}

export function addCounts(sum: Counts, more: Counts): void {
  sum.branches += more.branches;
  sum.facts += more.facts;
  sum.checkpoints += more.checkpoints;
  sum.contents += more.contents;
}

export async function digestSession(source: Source, sessionId: string): Promise<SessionDigest> {
  const { createdAt, version, metadata, state } = await needSession(source, sessionId);
  const branches = await branchesOf(source, sessionId);
  const order = branches.map(({ branchId }) => branchId);
  const counts = { ...noCounts(), branches: branches.length };
  const parts = new Map([
    ["its creation time", hashJson(createdAt)],
    ["its metadata", hashJson(metadata)],
    ["its state", hashJson(state)],
    ["its version", hashJson(version)],
    ["its list of branches", hashJson(order)],
  ]);
  for (const branch of branches) await digestBranch(source, branch, parts, counts);
  return { sessionId, ...counts, parts, sha256: hashJson([...parts]) };
}

async function digestBranch(source: Source, branch: BranchRecord, parts: Map<string, string>, counts: Counts) {
  const { branchId, createdAt, seq, parent = null, header } = branch;
  const of = `of branch "${branchId}"`;
  parts.set(`the row ${of}`, hashJson({ createdAt, seq, parent }));
  parts.set(`the header ${of}`, hashJson(header));
  const facts = createHash("sha256");
  for await (const page of ownFacts(source, branch)) {
    for (const { seq, id, data } of page) facts.update(JSON.stringify([seq, id, data]));
    counts.facts += page.length;
  }
  parts.set(`the facts ${of}`, facts.digest("hex"));
  const checkpoints = await source.listCheckpoints(branch);
  parts.set(`the checkpoints ${of}`, hashJson(checkpoints));
  counts.checkpoints += checkpoints.length;
  const contents = await ownContent(source, branch);
  const hashes: unknown[] = [];
  for (const { id, mediaType, name = null, createdAt, seq, info } of contents) {
    const sha256 = await hashContent(source, branch, id);
    hashes.push({ id, mediaType, name, createdAt, sha256, ...notes(seq, info) });
  }
  parts.set(`the content ${of}`, hashJson(hashes));
  counts.contents += contents.length;
}

/** Describes the first difference between two digests; undefined if there is none. */
export function firstDifference(one: SessionDigest, other: SessionDigest): string | undefined {
  if (one.sha256 === other.sha256) return undefined;
  const names = new Set([...one.parts.keys(), ...other.parts.keys()]);
  return [...names].find((name) => one.parts.get(name) !== other.parts.get(name)) ?? "the order of its branches";
}

async function hashContent(source: Source, branch: BranchRecord, id: string): Promise<string> {
  const hash = createHash("sha256");
  try {
    for await (const piece of source.content?.read(branch, id) ?? []) hash.update(piece);
  } catch (error) {
    if (!BoughError.is(error, "content_not_found")) throw error;
    return "missing";
  }
  return hash.digest("hex");
}

/** Left out where they say nothing, so that files exported before there were such keep their hash. */
function notes(seq: number, info: JsonObject) {
  return { ...(seq > 0 && { seq }), ...(Object.keys(info).length > 0 && { info }) };
}

/** A hash of the value that does not depend on the order of its keys. */
function hashJson(value: unknown): string {
  const sorted = JSON.stringify(value, (_, item) => {
    if (typeof item !== "object" || item === null || Array.isArray(item)) return item;
    return Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
  return createHash("sha256").update(sorted).digest("hex");
}
