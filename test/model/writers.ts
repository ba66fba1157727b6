// Writers that work on one store at the same time, each following a short script; a scheduler decides whose turn it is,
// both when a call is made and when its answer is noticed.

import fc from "fast-check";
import type { Appended, BranchRef, NewEvent, RunClaim, Store } from "../../src/log/index.ts";
import { askStore, type Call, claimIn, type Outcome, outcomeOf, refOf } from "./calls.ts";
import type { Observed } from "./history.ts";

export interface Move {
  readonly do: "append" | "again" | "claim" | "release" | "fork" | "delete" | "update" | "read";
  readonly branch: number;
  readonly facts: number;
  readonly option: number;
}

export type Script = readonly Move[];

/** The branches that writers know of. Forks get ids that were never used, unless `forkIds` says which. */
export interface World {
  readonly sessionId: string;
  readonly branches: string[];
  readonly forkIds?: readonly string[];
}

export function scripts(writers: number, moves: number, weights: Partial<Record<Move["do"], number>>) {
  const kinds = Object.entries(weights).map(([name, weight]) => ({
    weight,
    arbitrary: fc.constant(name as Move["do"]),
  }));
  const move = fc.record({
    do: fc.oneof(...kinds),
    branch: fc.nat({ max: 9 }),
    facts: fc.integer({ min: 1, max: 3 }),
    option: fc.nat({ max: 5 }),
  });
  const script = fc.array(move, { minLength: 1, maxLength: moves, size: "max" });
  return fc.array(script, { minLength: writers, maxLength: writers });
}

/** Runs all scripts to their end and returns what happened. */
export async function runWriters(
  scheduler: fc.Scheduler,
  store: Store,
  world: World,
  all: readonly Script[],
): Promise<Observed[]> {
  const history: Observed[] = [];
  let time = 0;
  const work = all.map(async (script, index) => {
    const writer = new Writer(`w${index}`, world);
    for (const move of script) {
      await scheduler.schedule(Promise.resolve(), `w${index} ${move.do}`);
      const call = writer.next(move);
      const start = ++time;
      const answer = outcomeOf(call.method, askStore(store, call)).catch(brokenBy);
      const outcome = await scheduler.schedule(answer, `w${index} answered`);
      const observed = { call, outcome, start, end: ++time };
      history.push(observed);
      writer.notice(observed);
    }
  });
  await scheduler.waitFor(Promise.all(work));
  return history;
}

/** An error that is no refusal: an answer that nothing explains, so that the history shows who got it. */
function brokenBy(error: unknown): Outcome {
  return { refused: `broken: ${error instanceof Error ? error.stack : error}`, data: [{}] };
}

/** What one writer knows, which may be out of date: that is the point. */
class Writer {
  readonly #name: string;
  readonly #world: World;
  readonly #seen = new Map<string, number>();
  readonly #claims = new Map<string, RunClaim>();
  #last: { ref: BranchRef; events: NewEvent[] } | undefined;
  #count = 0;

  constructor(name: string, world: World) {
    this.#name = name;
    this.#world = world;
  }

  next(move: Move): Call {
    const { sessionId, branches } = this.#world;
    this.#count += 1;
    const ref = { sessionId, branchId: branches[move.branch % branches.length]! };
    const epoch = this.#claims.get(ref.branchId)?.epoch ?? 0;
    switch (move.do) {
      case "append":
        return this.#append(ref, move, epoch);
      case "again":
        return this.#last ? call("append", this.#last.ref, this.#last.events, {}) : this.#append(ref, move, epoch);
      case "claim":
        return call("append", ref, [{ id: `${this.#name}.claim.${this.#count}`, data: "{}" }], {
          claim: { runId: `${this.#name}.${move.option % 2}`, owner: this.#name, leaseMs: 1000 },
        });
      case "release":
        return call("releaseRun", ref, { epoch });
      case "fork":
        return this.#fork(ref, move);
      case "delete":
        return this.#delete(ref, move);
      case "update":
        return call("updateSession", sessionId, { metadata: { [this.#name]: this.#count } }, expecting(move.option));
      case "read":
        return call("read", ref, { limit: 10_000 });
    }
  }

  notice({ call, outcome }: Observed): void {
    const claim = claimIn(call, outcome);
    if (claim) this.#claims.set(claim.branchId, claim);
    if (call.method === "createBranch" && "ok" in outcome && !this.#world.forkIds) {
      this.#world.branches.push((outcome.ok as BranchRef).branchId);
    }
    if (call.method === "append" && "ok" in outcome)
      this.#seen.set(refOf(call).branchId, (outcome.ok as Appended).last);
    if ("refused" in outcome && outcome.refused === "sequence_conflict") {
      this.#seen.set(refOf(call).branchId, outcome.data[0]!.actual as number);
    }
  }

  #append(ref: BranchRef, { facts, option }: Move, epoch: number): Call {
    const events = Array.from({ length: facts }, (_, i) => ({ id: `${this.#name}-${this.#count}.${i}`, data: `${i}` }));
    this.#last = { ref, events };
    const seen = this.#seen.get(ref.branchId);
    return call("append", ref, events, {
      ...(option % 2 === 0 && seen !== undefined && { expectedSeq: seen }),
      ...(epoch > 0 && option < 4 && { epoch, release: option === 0 }),
      ...(epoch === 0 && option === 5 && { claim: { runId: `${this.#name}.a`, owner: this.#name, leaseMs: 1000 } }),
    });
  }

  /** The first branch stays, so that there is always something to write to. */
  #delete(ref: BranchRef, { branch, option }: Move): Call {
    const others = this.#world.branches.slice(1);
    const also = option % 3 === 2 ? { also: [others[(branch + 1) % others.length]!] } : {};
    const target = { ...ref, branchId: others[branch % others.length]! };
    return call("deleteBranch", target, { recursive: option > 2, ...also });
  }

  #fork(ref: BranchRef, { option }: Move): Call {
    const { sessionId, forkIds } = this.#world;
    const id = forkIds ? forkIds[option % forkIds.length]! : `${this.#name}-fork${this.#count}`;
    const seq = Math.min(option, this.#seen.get(ref.branchId) ?? 1);
    return call("createBranch", sessionId, { id, header: {}, events: [], parent: { branchId: ref.branchId, seq } });
  }
}

function expecting(option: number) {
  return option < 3 ? { expectedVersion: option + 1 } : {};
}

function call(method: Call["method"], ...args: Call["args"]): Call {
  return { method, args };
}
