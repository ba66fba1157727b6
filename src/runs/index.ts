// Runs: one execution on a branch, from input to end.

export type { FetchRules } from "../content/index.ts";
export type {
  AudioOptions,
  AudioToTranscribe,
  SpeechModel,
  Transcribe,
  Transcript,
  TranscriptionModel,
} from "./audio/options.ts";
export { type CallOwner, currentCall, followCalls } from "./calls/call-owner.ts";
export type {
  ClearOptions,
  CompactionOptions,
  RunCompaction,
  RunCompactionOptions,
} from "./compaction/options.ts";
export { type SummaryOptions, summary } from "./compaction/summary.ts";
export {
  type AgentSettings,
  type Durable,
  defaultLimits,
  type Limits,
  messagesOf,
  type RunConfig,
  type RunInput,
  type RunOptions,
  type RunPlan,
  type Tasks,
  type Tightening,
  type TrackedWork,
} from "./config.ts";
export { execute } from "./execute.ts";
export type { ContentOptions, ProviderFiles } from "./files/options.ts";
export { type InterruptOutcome, type InterruptRequest, interruptRun } from "./interrupt.ts";
export { askerOf, findInterrupted, findLeft, findRoot, type InterruptedRun, isReady } from "./recovery/find.ts";
export { Sweeper } from "./recovery/sweeper.ts";
export { Run, type RunChild, type RunControl, type RunStart } from "./run.ts";
export {
  type OutputChoice,
  type OutputOf,
  type OutputPlan,
  type OutputRequest,
  outputSpecs,
  outputToolChoice,
  planOutput,
} from "./structured-output/plan.ts";
export { cancelTask } from "./tasks/control.ts";
export type { RunResult } from "./turn/close.ts";
export type { KeptTurn } from "./turn/open.ts";
