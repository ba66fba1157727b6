// Iteration limit: a turn ends after a number of model calls, unless a person lets it continue.

import * as v from "valibot";
import { continuationAnswer } from "../../events/answers.ts";
import type { IterationContext, Middleware } from "../port.ts";
import { defineState } from "../state.ts";
import { checkCount } from "./check-count.ts";

/** The limit of model calls per turn, and what happens when it is reached. */
export interface IterationLimitOptions {
  /** How many model calls a turn may make (default 10). */
  readonly max?: number;
  /** What happens at the limit: "stop" commits the turn as it is (default), "ask" asks a person whether to continue. */
  readonly onLimit?: "stop" | "ask";
  /** How many more model calls an approval without `iterations` allows (default 3). */
  readonly extension?: number;
}

const answerSchema = v.object(continuationAnswer);

/** Stops a turn (reason "iteration-limit"), or asks whether to continue, after too many model calls. */
export function iterationLimit(options: IterationLimitOptions = {}): Middleware {
  const { max = 10, onLimit = "stop", extension = 3 } = options;
  checkCount("max", max);
  checkCount("extension", extension);
  /** Only avoids repeated questions: a run that resumes the turn gets the same answers to them. */
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
