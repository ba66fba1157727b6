import type { FactPayload } from "../../events/codec.ts";
import type { Fact } from "../../events/index.ts";
import type { LanguageModel, Usage } from "../../models/index.ts";
import { addUsage } from "../../models/usage.ts";

/** How facts carry the size of a context. */
type ContextSize = NonNullable<FactPayload<"turn.committed">["context"]>;

/** What a turn remembers of its compactions and of the calls that they are decided on. */
export class CompactionProgress {
  /** What its summaries used, those that came to nothing included. */
  summaries: Usage = {};
  /** When its last model call was answered. */
  lastCallAt: number | undefined;
  /** The last answer that a model gave, and how the provider counted it. */
  lastReply: { readonly messageId: string; readonly usage: Usage; readonly model: string } | undefined;
  /** Whether the compaction that a caller wants in any case was tried. */
  isForced = false;
  /** Whether watchers know that there is nothing to compact. */
  isNothingTold = false;

  /** A compaction from before this run: its own, if an earlier run of the turn made it. */
  see({ reason, usage }: Fact<"history.compacted">): void {
    if (reason === "manual" || reason === "fork") return;
    if (reason === "force") this.isForced = true;
    if (usage) this.addSummary(usage as Usage);
  }

  /** A model has answered. */
  seeReply(messageId: string, usage: Usage, { provider, modelId }: LanguageModel, now: number): void {
    this.lastCallAt = now;
    // A copy: hooks are given the usage, too.
    this.lastReply = { messageId, usage: { ...usage }, model: `${provider}/${modelId}` };
  }

  /** What the last call was sent and answered, if the message is that answer: the size of the context after it. */
  contextAfter(messageId: string | undefined): ContextSize | undefined {
    const { lastReply } = this;
    if (!lastReply || lastReply.messageId !== messageId) return undefined;
    const { inputTokens, outputTokens = 0 } = lastReply.usage;
    return inputTokens === undefined ? undefined : { inputTokens, outputTokens, model: lastReply.model };
  }

  addSummary(usage: Usage): void {
    this.summaries = addUsage(this.summaries, usage);
  }
}
