// What the cases share: a fresh store per case, sessions on it with a clock and ids of their own, and small builders.

import { spawnSync } from "node:child_process";
import { hostname } from "node:os";
import { expect, test } from "vitest";
import { BoughError, type ErrorCode } from "../../src/base/errors.ts";
import {
  codec,
  type Draft,
  type Message,
  type NewMessage,
  type Part,
  type ToolResultPart,
  textOf,
} from "../../src/events/index.ts";
import type { BranchRef, Store } from "../../src/log/index.ts";
import { type RowHeader, turnPatch } from "../../src/projection/header.ts";
import { project } from "../../src/projection/index.ts";
import { openSessions, type Scope, type Sessions } from "../../src/sessions/index.ts";
import { checkLogs, type ManualClock, manualClock, seededIds } from "../../src/testing/index.ts";

export interface OpenedStore {
  readonly store: Store;
  /** Another handle on the same data, as another process would have; the same one where the data has only one. */
  second(): Promise<Store>;
  dispose(): Promise<void>;
}

/** How the suite gets at a kind of store. */
export interface Place {
  readonly kind: string;
  open(options: { clock: ManualClock }): Promise<OpenedStore>;
}

export interface Given {
  readonly sessions: Sessions;
  readonly store: Store;
  readonly clock: ManualClock;
  /** Sessions on the same data with nothing cached, as another process would have; by default this process's owner. */
  other(options?: { owner?: string; wrap?: (store: Store) => Store }): Promise<Sessions>;
}

export type Case = (name: string, run: (given: Given) => Promise<void>) => void;

/** Registers cases on a kind of store. */
export function casesOn(place: Place): Case {
  return (name, run) => test(name, () => withGiven(place, run));
}

/** Runs a case on a store of its own; what it leaves behind must be legal logs, and rows that tell the truth of them. */
export async function withGiven(place: Place, run: (given: Given) => Promise<void>): Promise<void> {
  const clock = manualClock();
  const opened = await place.open({ clock });
  try {
    const { store } = opened;
    let others = 0;
    const sessions = await openSessions(store, { clock, ids: seededIds("id") });
    const other: Given["other"] = async ({ owner, wrap = (same: Store) => same } = {}) => {
      others += 1;
      const ids = seededIds(`other${others}`);
      const second = wrap(await opened.second());
      return openSessions(second, { clock, ids, ...(owner && { owner }) });
    };
    await run({ sessions, store, clock, other });
    expect(await checkLogs(store)).toEqual([]);
    await rowsTellTheTruth(store);
  } finally {
    await opened.dispose();
  }
}

/** What listings show of every branch is what a replay of its log gives. */
async function rowsTellTheTruth(store: Store): Promise<void> {
  const { sessions } = await store.listSessions({ limit: 1000 });
  for (const session of sessions) {
    const branches = await store.listBranches(session.id);
    for (const branch of branches.slice(-20)) {
      const view = await replay(store, branch);
      const turn = view.open?.id ?? view.staged.at(-1)?.id;
      const { messages, turn: shown, compacted, owner, visibility, queued } = branch.header as RowHeader;
      expect({ branch: branch.branchId, messages, turn: shown, compacted, owner, visibility, queued }).toEqual({
        branch: branch.branchId,
        messages: view.shown!.length,
        turn,
        compacted: view.overlays.some(({ retention }) => retention === "hard") || undefined,
        owner: view.header.owner,
        visibility: view.header.visibility,
        queued: view.queue.length || undefined,
      });
    }
  }
}

/** The view of the whole log, read and folded from 1 without any cache or segment. */
export async function replay(store: Store, ref: BranchRef, to = Number.MAX_SAFE_INTEGER) {
  const facts = [];
  for (let after = 0; ; ) {
    const page = await store.read(ref, { after, before: to + 1, limit: 1000 });
    facts.push(...page.map((event) => codec.decode(event)));
    after = page.at(-1)?.seq ?? after;
    if (page.length < 1000) return project(facts);
  }
}

/** A name under which no process runs: one of this host that has ended. */
export function deadOwner(): string {
  dead ??= `${hostname()}/${spawnSync(process.execPath, ["-e", ""]).pid}`;
  return dead;
}
let dead: string | undefined;

export const s = { sessionId: "s" };
export const main = { sessionId: "s", branchId: "main" };
export const on = (branchId: string) => ({ sessionId: "s", branchId });

export function says(role: "user" | "assistant" | "system", text: string, id?: string): NewMessage {
  return { role, content: text, ...(id !== undefined && { id }) };
}

export function asks(id: string, ...callIds: string[]): NewMessage {
  const content = callIds.map((toolCallId): Part => ({ type: "tool-call", toolCallId, toolName: "add", input: {} }));
  return { role: "assistant", content, id };
}

export function result(callId: string, value = `result of ${callId}`) {
  return { callId, toolName: "add", output: { type: "text", value } };
}

/** Turns of a question and an answer: messages q1, a1, q2, a2 … */
export async function talk(
  sessions: Sessions,
  scope: Scope,
  from: number,
  to = from,
  more: object = {},
): Promise<void> {
  for (let n = from; n <= to; n++) {
    await sessions.appendTurn(scope, [says("user", `q${n}`, `q${n}`), says("assistant", `a${n}`, `a${n}`)], more);
  }
}

export function idsOf(messages: readonly Message[]): string[] {
  return messages.map(({ id }) => id);
}

export function textsOf(messages: readonly Message[]): string[] {
  return messages.map((message) => textOf(message));
}

/** What each tool message says: call id to value. */
export function resultsIn(messages: readonly Message[]): Record<string, string>[] {
  return messages
    .filter(({ role }) => role === "tool")
    .map(({ content }) =>
      Object.fromEntries(
        (content as readonly ToolResultPart[]).map(({ toolCallId, output }) => [toolCallId, String(output.value)]),
      ),
    );
}

/** The promise must be refused with this code and, where given, at least this data. */
export async function refused(promise: Promise<unknown>, code: ErrorCode, data: object = {}): Promise<BoughError> {
  const outcome = await promise.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  if ("value" in outcome) expect.fail(`expected ${code}, but it resolved with ${JSON.stringify(outcome.value)}`);
  if (!BoughError.is(outcome.error)) throw outcome.error;
  expect(outcome.error.code, outcome.error.message).toBe(code);
  expect(outcome.error.data).toMatchObject(data);
  return outcome.error;
}

/** Appends facts of any kind, the way a process that knows more than this one would. */
export async function appendRaw(store: Store, ref: BranchRef, ...drafts: Draft[]): Promise<void> {
  const encoded = drafts.map((draft) => codec.encode(draft));
  await store.append(ref, encoded, { header: turnPatch(await replay(store, ref), drafts) });
}

/** A store that answers nothing any more after so many writes, as a dead process asks nothing. */
export function dying(store: Store, writes: number): { readonly store: Store; readonly died: Promise<void> } {
  let left = writes;
  let die = () => {};
  const died = new Promise<void>((resolve) => {
    die = resolve;
  });
  const writing = new Set<keyof Store>(["append", "createBranch", "createSession"]);
  const proxy = new Proxy(store, {
    get(target, name: keyof Store) {
      const value = target[name];
      if (typeof value !== "function") return value;
      return (...args: never[]) => {
        if (writing.has(name)) left--;
        if (left >= 0) return (value as (...all: never[]) => unknown).apply(target, args);
        die();
        return new Promise(() => {});
      };
    },
  });
  return { store: proxy, died };
}
