// Error limits: a model that only produces errors is stopped before it has used up everything.

import type { ToolOutput } from "../../events/index.ts";
import type { Middleware } from "../port.ts";
import { defineState } from "../state.ts";
import { checkCount } from "./check-count.ts";

/** How many tool errors a turn may have. */
export interface ErrorLimitOptions {
  /** The number of consecutive tool errors that ends the turn (default 5). */
  readonly consecutive?: number;
  /** The total number of tool errors that ends the turn (default 20). */
  readonly total?: number;
}

const countsState = defineState({ key: "error-limits", scope: "run", initial: { consecutive: 0, total: 0 } });

/** Ends a turn (reason "error-limit") after too many tool errors; denials don't count. */
export function errorLimits({ consecutive = 5, total = 20 }: ErrorLimitOptions = {}): Middleware {
  checkCount("consecutive", consecutive);
  checkCount("total", total);
  return {
    name: "error-limits",
    state: [countsState],
    async afterTools(context, outputs) {
      let longest = 0;
      const counts = await context.state.update(countsState, (before) => {
        const after = { ...before };
        for (const output of outputs) {
          after.consecutive = isError(output) ? after.consecutive + 1 : 0;
          if (isError(output)) after.total++;
          longest = Math.max(longest, after.consecutive);
        }
        return after;
      });
      if (longest >= consecutive) context.reachLimit("consecutive-errors", consecutive);
      else if (counts.total >= total) context.reachLimit("errors", total);
      else return;
      context.stop("error-limit");
    },
  };
}

function isError({ type }: ToolOutput): boolean {
  return type === "error-text" || type === "error-json";
}
