// Middleware: user code in a run, and the built-in middleware.

export { clarification } from "./builtin/clarification.ts";
export { type ErrorLimitOptions, errorLimits } from "./builtin/error-limits.ts";
export { type IterationLimitOptions, iterationLimit } from "./builtin/iteration-limit.ts";
export { type PermissionOptions, permissions } from "./builtin/permissions.ts";
export { type PlanStep, planning, planState } from "./builtin/planning.ts";
export { type RepeatedCallOptions, repeatedCalls } from "./builtin/repeated-calls.ts";
export { telemetry } from "./builtin/telemetry.ts";
export { loadTracer } from "./builtin/tracer.ts";
export { buildPipeline, type Pipeline } from "./pipeline.ts";
export type * from "./port.ts";
export { defineState, type StateDeclaration, type StateSchema } from "./state.ts";
export { StateBag } from "./state-bag.ts";
