// Tools: what a model may call.

export { defineTool, type ToolDefinition } from "./define.ts";
export { checkedBySchema } from "./json-schema.ts";
export type * from "./port.ts";
export { prepareTools, toolSpec } from "./prepare.ts";
export * as problems from "./problems.ts";
export { readFileTool } from "./read-file.ts";
export { type RunToolOptions, runTool } from "./run.ts";
export { type InputOf, type JsonSchemaInput, type RawInputOf, readSchema, type ToolInput } from "./schema.ts";
