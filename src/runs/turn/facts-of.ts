import type { Fact, UnknownFact } from "../../events/index.ts";
import type { BranchRef } from "../../log/index.ts";
import type { Context } from "../../sessions/context.ts";

/** The facts of a part of a branch's log. */
export async function factsOf(
  { journal }: Context,
  ref: BranchRef,
  { from, before }: { from: number; before: number },
): Promise<readonly (Fact | UnknownFact)[]> {
  const facts: (Fact | UnknownFact)[] = [];
  for (let after = from - 1; after < before - 1; ) {
    const page = await journal.read(ref, { after, before });
    if (page.facts.length === 0) break;
    for (const fact of page.facts) facts.push(fact);
    after = page.facts.at(-1)!.seq;
  }
  return facts;
}
