// What several writers did to one store at the same time, written down, and whether it could have been so.
//
//   H1. An acknowledged append is in the log, once, at the numbers it was told.
//   H2. What was acknowledged before something began has smaller numbers than it.
//   H3. A read is a beginning of the log, with everything that was acknowledged before it began.
//   H4. A conflict is told only if the position, the claim or the deletion it names was true at some time of the call.
//   H5. Along a log the epochs never go down, and each is a claim's.

import type { Appended, BranchRef, NewEvent, RunClaim, StoredEvent } from "../../src/log/index.ts";
import { type Call, claimIn, type Outcome, refOf } from "./calls.ts";

/** A call with the store's own epochs, what became of it, and when, counted in events of the history. */
export interface Observed {
  readonly call: Call;
  readonly outcome: Outcome;
  readonly start: number;
  readonly end: number;
}

interface Append extends Observed {
  readonly events: readonly NewEvent[];
  readonly first: number;
  readonly last: number;
  readonly epoch: number | undefined;
}

/** Everything that was observed of one branch, and its log at the end (none when it was deleted). */
export interface BranchHistory {
  readonly base: number;
  readonly observed: readonly Observed[];
  readonly deletes: readonly Observed[];
  readonly log: readonly StoredEvent[] | undefined;
}

/** What can't have been, in sentences. */
export function checkHistory(branch: BranchHistory): string[] {
  const appends = firstTimes(appendsOf(branch.observed));
  return [
    ...checkAcknowledged(branch, appends),
    ...checkOrder(appends),
    ...branch.observed.flatMap((observed) => checkRead(branch, appends, observed)),
    ...branch.observed.flatMap((observed) => checkRefusal(branch, appends, observed)),
    ...checkEpochs(branch, appends),
  ];
}

function appendsOf(observed: readonly Observed[]): Append[] {
  return observed.flatMap((each) => {
    if (each.call.method !== "append" || !("ok" in each.outcome)) return [];
    const [, events, options] = each.call.args as [BranchRef, NewEvent[], { epoch?: number }];
    const { first, last, claim } = each.outcome.ok as Appended;
    return [{ ...each, events, first, last, epoch: options?.epoch ?? claim?.epoch }];
  });
}

/** Without repeats: of the calls that got the same numbers, the one that began first. */
function firstTimes(appends: readonly Append[]): Append[] {
  const byFirst = new Map<number, Append>();
  for (const append of appends) {
    const known = byFirst.get(append.first);
    if (!known || append.start < known.start) byFirst.set(append.first, append);
  }
  return [...byFirst.values()].sort((a, b) => a.first - b.first);
}

function checkAcknowledged({ log, base }: BranchHistory, appends: readonly Append[]): string[] {
  const problems: string[] = [];
  let next = base + 1;
  for (const { first, last, events } of appends) {
    if (first !== next || last !== first + events.length - 1)
      problems.push(`${first}…${last} does not follow ${next - 1}`);
    next = last + 1;
    for (const [i, { id, data }] of events.entries()) {
      const found = log?.[first + i - 1];
      if (log && (found?.id !== id || found.data !== data)) problems.push(`H1: ${id} is not at ${first + i}`);
    }
  }
  if (log && log.length !== next - 1) problems.push(`H1: the log has ${log.length} facts, ${next - 1} were written`);
  return problems;
}

function checkOrder(appends: readonly Append[]): string[] {
  const problems: string[] = [];
  for (const a of appends) {
    for (const b of appends) {
      if (a.end < b.start && a.last >= b.first) problems.push(`H2: ${b.first} began after ${a.last} was acknowledged`);
    }
  }
  return problems;
}

function checkRead({ log }: BranchHistory, appends: readonly Append[], { call, outcome, start }: Observed): string[] {
  if (call.method !== "read" || !("ok" in outcome) || !log) return [];
  const read = outcome.ok as StoredEvent[];
  const wrong = read.find((event, i) => event.seq !== i + 1 || log[i]?.id !== event.id);
  if (wrong) return [`H3: a read showed ${wrong.id} at ${wrong.seq}`];
  const boundary = read.length === 0 || appends.every(({ first, last }) => read.length < first || read.length >= last);
  const missed = appends.find(({ end, last }) => end < start && last > read.length);
  return [
    ...(boundary ? [] : [`H3: a read ended at ${read.length}, inside an append`]),
    ...(missed ? [`H3: a read missed ${missed.last}, which was acknowledged before`] : []),
  ];
}

function checkRefusal(branch: BranchHistory, appends: readonly Append[], observed: Observed): string[] {
  const { outcome, call } = observed;
  if ("ok" in outcome) {
    const gone = branch.deletes.find((each) => "ok" in each.outcome && each.end < observed.start);
    return gone ? [`H4: ${call.method} worked on a deleted branch`] : [];
  }
  const data = outcome.data[0]!;
  const justified = justify(branch, appends, observed, outcome.refused, data);
  return justified
    ? []
    : [`H4: ${call.method} had no reason to be refused: ${outcome.refused} ${JSON.stringify(data)}`];
}

function justify(
  branch: BranchHistory,
  appends: readonly Append[],
  { start, end }: Observed,
  code: string,
  data: Record<string, unknown>,
): boolean {
  switch (code) {
    case "sequence_conflict": {
      const before = appends.find(({ last }) => last === data.actual);
      const after = appends.find(({ first }) => first === (data.actual as number) + 1);
      const reached = data.actual === branch.base || (before !== undefined && before.start < end);
      return data.actual !== data.expected && reached && !(after && after.end < start);
    }
    case "epoch_stale": {
      const newer = claims(branch).some((each) => each.start < end && each.claim.epoch > (data.epoch as number));
      return newer || releases(branch).some((each) => each.start < end && each.epoch === data.epoch);
    }
    case "run_active": {
      const held = claims(branch).some((each) => each.start < end && each.claim.epoch === data.epoch);
      const free = releases(branch).some((each) => each.end < start && each.epoch === data.epoch);
      return held && !free;
    }
    case "branch_not_found":
      return branch.deletes.some((each) => each.start < end);
    default:
      return false;
  }
}

function claims({ observed }: BranchHistory): (Observed & { claim: RunClaim })[] {
  return observed.flatMap((each) => {
    const claim = claimIn(each.call, each.outcome);
    return claim ? [{ ...each, claim }] : [];
  });
}

/** Every call that may have given a claim back. */
function releases({ observed }: BranchHistory): (Observed & { epoch: number })[] {
  return observed.flatMap((each) => {
    const { method, args } = each.call;
    if (method === "releaseRun" && "ok" in each.outcome && each.outcome.ok) return [{ ...each, epoch: args[1].epoch }];
    if (method !== "append" || !args[2]?.release || !("ok" in each.outcome)) return [];
    const epoch = args[2].epoch ?? (each.outcome.ok as Appended).claim?.epoch;
    return epoch === undefined ? [] : [{ ...each, epoch }];
  });
}

function checkEpochs(branch: BranchHistory, appends: readonly Append[]): string[] {
  const known = claims(branch);
  const problems: string[] = [];
  let newest = 0;
  for (const { epoch, first } of appends) {
    if (epoch === undefined) continue;
    if (epoch < newest) problems.push(`H5: the epoch at ${first} is ${epoch}, after ${newest}`);
    newest = Math.max(newest, epoch);
    if (!known.some(({ claim }) => claim.epoch === epoch)) problems.push(`H5: nobody claimed the epoch at ${first}`);
  }
  for (const a of known) {
    for (const b of known) {
      if (a.end < b.start && a.claim.epoch > b.claim.epoch)
        problems.push(`H5: ${b.claim.epoch} came after ${a.claim.epoch}`);
    }
  }
  return problems;
}

/** The parts of a history that are about one branch. */
export function historyOf(history: readonly Observed[], branchId: string) {
  const observed = history.filter(({ call }) => call.method !== "deleteBranch" && refOf(call).branchId === branchId);
  const deletes = history.filter(({ call, outcome }) => {
    if (call.method !== "deleteBranch") return false;
    return refOf(call).branchId === branchId || ("ok" in outcome && (outcome.ok as string[]).includes(branchId));
  });
  return { observed, deletes };
}
