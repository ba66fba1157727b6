// Bough: durable sessions, branches and events for TypeScript agents.

export * from "./agent/index.ts";
export type { Clock } from "./base/clock.ts";
export { BoughError, type ErrorCode } from "./base/errors.ts";
export type { Ids } from "./base/ids.ts";
export type { Json, JsonObject } from "./base/json.ts";
export { type Redact, redactSecrets } from "./base/redact.ts";
export type { BoughEvent, KeptEvent, LiveEvent, Message, NewMessage, Part, Role, ToolOutput } from "./events/index.ts";
export type * from "./log/store.ts";
export type * from "./middleware/index.ts";
export {
  clarification,
  defineState,
  errorLimits,
  permissions,
  planning,
  planState,
  repeatedCalls,
} from "./middleware/index.ts";
export type { LanguageModel, ModelChoice, ModelRequest, ModelSettings, ToolChoice, Usage } from "./models/index.ts";
export type { Interaction, OpenTurn, TurnRecord } from "./projection/index.ts";
export type { RememberedPermission } from "./projection/permissions.ts";
export type {
  Durable,
  InterruptedRun,
  InterruptOutcome,
  InterruptRequest,
  Limits,
  OutputChoice,
  OutputOf,
  OutputRequest,
  Run,
  RunConfig,
  RunInput,
  RunOptions,
  RunResult,
} from "./runs/index.ts";
export * from "./sessions/index.ts";
export {
  defineTool,
  type Tool,
  type ToolContext,
  type ToolDefinition,
  type ToolSet,
  type ToolSource,
} from "./tools/index.ts";
