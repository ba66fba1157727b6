// A call of the port as data, so that the model and every store can be asked the same.

import { BoughError } from "../../src/base/errors.ts";
import type { BranchRef, NewContentRow, RunClaim, Store } from "../../src/log/index.ts";
import { putBytes } from "../../src/testing/content.ts";
import { type Model, Refusal } from "./model.ts";

/** The epochs in a call are the model's. */
export interface Call {
  readonly method: CallName;
  // biome-ignore lint/suspicious/noExplicitAny: the arguments of whichever method it is
  readonly args: readonly any[];
}

export type CallName =
  | "createSession"
  | "updateSession"
  | "deleteSession"
  | "createBranch"
  | "deleteBranch"
  | "append"
  | "read"
  | "renewRun"
  | "releaseRun"
  | "saveCheckpoint"
  | "deleteCheckpoints"
  | "saveSegment"
  | "getSegment"
  | "putContent"
  | "deleteContent"
  | "maintain";

export type Outcome = { ok: unknown } | { refused: string; data: readonly Record<string, unknown>[] };

/** What the model answers, copied: the model goes on changing. */
export function askModel(model: Model, { method, args }: Call): Outcome {
  try {
    const ask = model[method] as (...args: unknown[]) => unknown;
    return { ok: structuredClone(ordered(method, ask.apply(model, [...args]))) };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return { refused: error.code, data: structuredClone(error.data) };
  }
}

/** Asks a store: what the model does by itself is done by a part of the store. */
export async function askStore(store: Store, { method, args }: Call): Promise<unknown> {
  const { segments, content } = store;
  const parts: Partial<Record<CallName, unknown>> = {
    saveSegment: segments?.save,
    getSegment: segments?.get,
    putContent: (ref: BranchRef, given: NewContentRow & { bytes: Uint8Array }) => putBytes(store, ref, given),
    deleteContent: content && ((ref: BranchRef, id: string) => content.delete(ref, id)),
  };
  const ask = (parts[method] ?? Reflect.get(store, method)) as (...args: unknown[]) => Promise<unknown>;
  return ask.apply(store, [...args]);
}

/** What became of a promise, in the same words as the model's answers. */
export async function outcomeOf(method: CallName, promise: Promise<unknown>): Promise<Outcome> {
  try {
    return { ok: ordered(method, await promise) };
  } catch (error) {
    if (!BoughError.is(error)) throw error;
    return { refused: error.code, data: [{ ...error.data }] };
  }
}

/** The port does not say in which order the ids of deleted branches come. */
function ordered(method: CallName, value: unknown): unknown {
  return method === "deleteBranch" ? [...(value as string[])].sort() : value;
}

/** The branch a call is about, where it is about one. */
export function refOf({ args }: Call): BranchRef {
  return args[0];
}

/** The call with every epoch in it replaced. */
export function mapCallEpochs(call: Call, map: (epoch: number) => number): Call {
  const [ref, second, third] = call.args;
  switch (call.method) {
    case "renewRun":
    case "releaseRun":
      return { ...call, args: [ref, { ...second, epoch: map(second.epoch) }] };
    case "append": {
      const options = { ...third };
      if (options.epoch !== undefined) options.epoch = map(options.epoch);
      if (options.claim) options.claim = mapOver(options.claim, map);
      return { ...call, args: [ref, second, options] };
    }
    default:
      return call;
  }
}

function mapOver<T extends { over?: number }>(claim: T, map: (epoch: number) => number): T {
  return claim.over === undefined ? claim : { ...claim, over: map(claim.over) };
}

/** The claim in an answer, if there is one. */
export function claimIn({ method }: Call, outcome: Outcome): RunClaim | undefined {
  if (!("ok" in outcome)) return undefined;
  if (method === "renewRun") return outcome.ok as RunClaim;
  return method === "append" ? (outcome.ok as { claim?: RunClaim }).claim : undefined;
}

/** The answer with every epoch in it replaced. */
export function mapOutcomeEpochs(
  call: Call,
  outcome: Outcome,
  map: (ref: BranchRef, epoch: number) => number,
): Outcome {
  if ("refused" in outcome) {
    const data = outcome.data.map((each) =>
      typeof each.epoch === "number" ? { ...each, epoch: map(each as unknown as BranchRef, each.epoch) } : each,
    );
    return { ...outcome, data };
  }
  const claim = claimIn(call, outcome);
  if (!claim) return outcome;
  const mapped = { ...claim, epoch: map(claim, claim.epoch) };
  return { ok: call.method === "append" ? { ...(outcome.ok as object), claim: mapped } : mapped };
}
