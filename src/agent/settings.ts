import { freezeJson } from "../base/json.ts";
import { redactor } from "../base/redact.ts";
import { ownEventTable } from "../events/present-own.ts";
import { defaultRetry } from "../models/index.ts";
import { planAudio } from "../runs/audio/options.ts";
import { planCompaction } from "../runs/compaction/options.ts";
import { planFiles } from "../runs/files/options.ts";
import { type AgentSettings, defaultLimits } from "../runs/index.ts";
import { latestOnly } from "../sessions/index.ts";
import type { AgentOptions } from "./options.ts";
import { checkLimits, modelOf } from "./plan.ts";

/** What all runs of an agent share, with the defaults filled in. */
export function settingsOf(
  options: AgentOptions,
  own: Pick<AgentSettings, "clock" | "hub" | "tasks" | "leaving">,
): AgentSettings {
  const { id, name, limits, retry, durable, persistAfterTurn = true, leaseMs = 30_000, random = Math.random } = options;
  const { onIterations: _onIterations, ...numbers } = limits ?? {};
  return {
    ...own,
    events: ownEventTable(options.events),
    // Every event has it.
    stamp: freezeJson({ ...(id && { id }), ...(name && { name }), chain: [name ?? id ?? "agent"], depth: 0 }),
    random,
    limits: checkLimits({ ...defaultLimits, ...numbers }),
    retry: { ...defaultRetry, ...retry },
    persistAfterTurn,
    promptCaching: options.promptCaching ?? true,
    compaction: planCompaction(options.compaction),
    findModel: (choice) => modelOf(options, choice),
    files: planFiles(options.content),
    audio: planAudio(options.audio),
    leaseMs,
    redact: redactor(options.redact),
    ...(durable && { durable: { retention: latestOnly(), ...durable } }),
  };
}
