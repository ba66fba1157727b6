// Runs: one execution on a branch, from input to end.

export { type CallOwner, currentCall, followCalls } from "./call-owner.ts";
export type { RunResult } from "./close.ts";
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
} from "./config.ts";
export { execute } from "./execute.ts";
export { type InterruptOutcome, type InterruptRequest, interruptRun } from "./interrupt.ts";
export type { KeptTurn } from "./open.ts";
export {
  type OutputChoice,
  type OutputOf,
  type OutputPlan,
  type OutputRequest,
  outputSpecs,
  outputToolChoice,
  planOutput,
} from "./output-plan.ts";
export { findInterrupted, findLeft, type InterruptedRun } from "./recovery.ts";
export { Run, type RunControl } from "./run.ts";
export { Sweeper } from "./sweeper.ts";
