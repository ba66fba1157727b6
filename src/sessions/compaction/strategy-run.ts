// Running a strategy: it may throw, hang or return anything, and costs no more than its time.

import { untilAborted } from "../../base/abort.ts";
import { alarm, type Clock } from "../../base/clock.ts";
import { BoughError } from "../../base/errors.ts";
import type { CompactionStrategy, StrategyInput, StrategyOutput } from "./port.ts";
import { checkOutput } from "./strategies.ts";

/** How long a strategy may take that does not say. */
const defaultTimeoutMs = 60_000;

/** What the strategy makes of its input; throws what it throws, or `aborted` when it takes too long. */
export async function runStrategy(
  strategy: CompactionStrategy,
  inputFor: (signal: AbortSignal) => StrategyInput,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): Promise<StrategyOutput> {
  const { name, timeoutMs = defaultTimeoutMs } = strategy;
  const over = new AbortController();
  const tooLong = () => over.abort(new BoughError("aborted", `Strategy "${name}" took more than ${timeoutMs} ms.`));
  const cancel = alarm(clock, timeoutMs, tooLong);
  const both = AbortSignal.any([signal, over.signal]);
  try {
    // A strategy that throws before its first await fails like one that throws later.
    const work = async () => strategy.compact(inputFor(both));
    return checkOutput(name, await untilAborted(both, work()));
  } finally {
    cancel();
    // Whatever it left running stops.
    over.abort();
  }
}
