import { countShown, unclosedMessages } from "../../projection/overlay.ts";
import type { BranchView } from "../../projection/view.ts";
import type { ContextUsage } from "../../wire/index.ts";
import { readBreaker } from "./breaker.ts";
import { countSeen, nextAt } from "./due.ts";
import { measurePrompt, type PromptFrame } from "./measure.ts";
import { type CompactionPlan, windowOf } from "./options.ts";

/** How full the context is for runs with these prompts and this plan. */
export function contextUsageOf(view: BranchView, frame: PromptFrame, plan: CompactionPlan): ContextUsage {
  const { model } = frame;
  const measured = measurePrompt(view, frame);
  const window = windowOf(plan, model);
  const next = nextAt(plan, window);
  return {
    ...measured,
    ...(window !== undefined && { window, share: measured.tokens / window }),
    messages: countShown(view) + unclosedMessages(view).length,
    visible: countSeen(view),
    compactions: view.overlays.length + new Set(view.cleared.map(({ id }) => id)).size,
    ...(next !== undefined && { nextAt: next }),
    breaker: readBreaker(view, `${model.provider}/${model.modelId}`),
  };
}
