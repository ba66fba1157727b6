// Iteration limit: a turn ends after so many model calls, or a person says that it may go on.

import * as v from "valibot";
import { continuationAnswer } from "../../events/answers.ts";
import type { IterationContext, Middleware } from "../port.ts";
import { defineState } from "../state.ts";
import { checkCount } from "./check-count.ts";

/** How many model calls a turn may make, and what happens then. */
export interface IterationLimitOptions {
  /** How many model calls a turn may make (default 10). */
  readonly max?: number;
  /** What happens then: the turn is committed as it is (the default), or a person is asked whether to go on. */
  readonly onLimit?: "stop" | "ask";
  /** How many more an approval allows when it names no number (default 3). */
  readonly extension?: number;
}

/** How a person answers whether a turn may go on. */
export interface ContinuationAnswer {
  readonly approved: boolean;
  /** How many more model calls. */
  readonly iterations?: number;
}

const answerSchema = v.object(continuationAnswer);

/** Stops a turn, or asks whether to go on, when it has made too many model calls (reason "iteration-limit"). */
export function iterationLimit(options: IterationLimitOptions = {}): Middleware {
  const { max = 10, onLimit = "stop", extension = 3 } = options;
  checkCount("max", max);
  checkCount("extension", extension);
  /** Only spares questions: a run that takes the turn up later gets the same answers to them. */
  const limitState = defineState({ key: "iteration-limit", scope: "run", initial: max });
  return {
    name: "iteration-limit",
    state: [limitState],
    async beforeIteration(context) {
      let limit = await context.state.get(limitState);
      while (context.iteration > limit) {
        context.reachLimit("iterations", limit);
        const more = onLimit === "ask" ? await askForMore(context, limit, extension) : 0;
        if (more === 0) return context.stop("iteration-limit");
        limit += more;
        await context.state.set(limitState, limit);
      }
    },
  };
}

async function askForMore(context: IterationContext, limit: number, extension: number): Promise<number> {
  const { iteration } = context;
  const given = await context.ask({ kind: "continuation", key: String(limit), request: { iteration, limit } });
  if (!given.answered) return 0;
  const answer = v.safeParse(answerSchema, given.answer);
  return answer.success && answer.output.approved ? (answer.output.iterations ?? extension) : 0;
}
