// Tools: what a model may call.

export { defineTool, type ToolDefinition } from "./define.ts";
export { messageOf, outputOf } from "./output.ts";
export type * from "./port.ts";
export { prepareTools, toolSpec } from "./prepare.ts";
export * as problems from "./problems.ts";
export { type RunToolOptions, runTool, type ToolRetryNotice } from "./run.ts";
export { type InputOf, type JsonSchemaInput, readSchema, type StandardInput, type ToolInput } from "./schema.ts";
