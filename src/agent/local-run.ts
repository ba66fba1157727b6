// Runs of an agent's own process, as its handles give them.

import { BoughError } from "../base/errors.ts";
import type { JsonObject } from "../base/json.ts";
import type { BoughEvent, InteractionAnswer } from "../events/index.ts";
import type { Run } from "../runs/index.ts";
import type { BranchRun } from "../wire/index.ts";

/** A run of this process as a handle gives it. */
export class LocalRun implements BranchRun {
  readonly #run: Run;

  constructor(run: Run) {
    this.#run = run;
  }

  get result(): BranchRun["result"] {
    return this.#run.result as BranchRun["result"];
  }

  get textStream(): AsyncIterable<string> {
    return textDeltas(this.#run);
  }

  [Symbol.asyncIterator](): AsyncIterator<BoughEvent, undefined> {
    return this.#run[Symbol.asyncIterator]();
  }

  text(): Promise<string> {
    return this.#run.text();
  }

  interrupt(reason?: string): Promise<void> {
    return this.#run.interrupt(reason);
  }

  respond(interactionId: string, answer: InteractionAnswer): Promise<void> {
    return this.#run.respond(interactionId, answer as unknown as JsonObject);
  }
}

async function* textDeltas(run: Run): AsyncGenerator<string> {
  for await (const event of run) if (event.type === "text-delta") yield event.text;
  const { status, error, reason } = await run.result;
  if (error) throw error;
  if (status !== "completed") throw new BoughError("aborted", `The run was ${status}: ${reason}.`);
}

/** Resolves when the run has its branch and its input is durable; throws whatever kept it from that. */
async function begun(run: Run): Promise<void> {
  for await (const event of run) if (event.type === "run-start") break;
}

/** The run that goes on with a turn: this one, or one that was faster. */
export async function takenUp(run: Run): Promise<string | undefined> {
  try {
    await begun(run);
    return run.runId;
  } catch (error) {
    if (BoughError.is(error, "run_active")) return String(error.data.runId);
    if (BoughError.is(error, "nothing_to_resume") || BoughError.is(error, "epoch_stale")) return undefined;
    throw error;
  }
}
