// Middleware: code of others in a run, and the pieces of it that Bough brings.

export { clarification } from "./builtin/clarification.ts";
export { type ErrorLimitOptions, errorLimits } from "./builtin/error-limits.ts";
export { type ContinuationAnswer, type IterationLimitOptions, iterationLimit } from "./builtin/iteration-limit.ts";
export { type PermissionAnswer, type PermissionOptions, permissions } from "./builtin/permissions.ts";
export { type PlanStep, planning, planState } from "./builtin/planning.ts";
export { type RepeatedCallOptions, repeatedCalls } from "./builtin/repeated-calls.ts";
export { type TelemetryOptions, telemetry } from "./builtin/telemetry.ts";
export { type AttributeValue, loadTracer, type Span, type Tracer } from "./builtin/tracer.ts";
export { buildPipeline, type Pipeline } from "./pipeline.ts";
export type * from "./port.ts";
export { defineState, type StateDeclaration, type StateSchema } from "./state.ts";
export { StateBag, type StateBagOptions, type StateMigration } from "./state-bag.ts";
