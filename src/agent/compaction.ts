// What an agent knows about compactions that its sessions don't: the model, what its prompts begin with, the strategy.

import { type ModelRequest, toPrompt } from "../models/index.ts";
import { closedTranscript, unclosedTranscript } from "../projection/transcript.ts";
import type { BranchView } from "../projection/view.ts";
import { askerOf } from "../runs/compaction/asker.ts";
import { contextUsageOf } from "../runs/compaction/context-usage.ts";
import { FileResolver } from "../runs/files/resolver.ts";
import { branchFiles } from "../runs/files/source.ts";
import type { AgentSettings } from "../runs/index.ts";
import type { Compactor } from "../sessions/compaction/compact.ts";
import type { Context } from "../sessions/context.ts";
import type { ContextUsage } from "../wire/index.ts";
import type { AgentOptions } from "./options.ts";
import { type AgentBase, modelOf } from "./plan.ts";

interface CompactingAgent {
  readonly context: Context;
  readonly options: AgentOptions;
  readonly settings: AgentSettings;
  prepared(): Promise<AgentBase>;
}

/** What the agent adds to compactions by hand: its strategy, its model, and the request of its next call. */
export function compactorOf(agent: CompactingAgent): Compactor {
  const { context, options, settings } = agent;
  const { compaction, files: plan } = settings;
  return {
    strategy: compaction.strategy,
    keep: compaction.keep,
    retention: compaction.retention,
    onFork: compaction.onFork,
    async asker(ref, view) {
      const { model, tools, instructions } = await frameOf(agent);
      const sources = { history: closedTranscript(view), turn: unclosedTranscript(view), reasoning: "turn" as const };
      const prompt = toPrompt({ ...sources, ...(instructions !== undefined && { instructions }) });
      const caching = settings.promptCaching && { promptCaching: { key: ref.sessionId } };
      const request = () => ({ model, prompt, tools, settings: options.settings ?? {}, ...caching });
      // No run is there to tell of a file that can't be sent; the summary is made with its note.
      const files = new FileResolver({ source: branchFiles(context, ref, { plan }), plan, onFail: () => {} });
      const resolve = (asked: ModelRequest) => files.resolve(asked);
      return (signal) => askerOf({ plan: settings, compaction, signal, request, resolve });
    },
  };
}

/** How full the context of a run on this branch would be. */
export async function agentContextUsage(agent: CompactingAgent, view: BranchView): Promise<ContextUsage> {
  return contextUsageOf(view, await frameOf(agent), agent.settings.compaction);
}

async function frameOf({ options, prepared }: CompactingAgent) {
  const { toolSpecs: tools } = await prepared();
  return { model: await modelOf(options, options.model), tools, instructions: options.instructions };
}
