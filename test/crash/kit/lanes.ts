import { type TestContext, test } from "vitest";

/** Child processes wait for the disk and for each other, so a few more than there are processors pay off. */
const lanes = 3;
let free = lanes;
const waiting: (() => void)[] = [];

/** A test for each case, a few of them at the same time. */
export function inLanes<T extends object>(
  title: string,
  cases: readonly T[],
  run: (given: T, context: TestContext) => Promise<void>,
): void {
  for (const given of cases) {
    test.concurrent(`${title}: ${Object.values(given).join(", ")}`, async (context) => {
      await enter();
      try {
        await run(given, context);
      } finally {
        leave();
      }
    });
  }
}

async function enter(): Promise<void> {
  if (free > 0) free--;
  else await new Promise<void>((resolve) => waiting.push(resolve));
}

function leave(): void {
  const next = waiting.shift();
  if (next) next();
  else free++;
}
