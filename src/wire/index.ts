// The wire: the HTTP contract, defined once for server and client. Pure, and safe in a browser.

export type * from "./changes.ts";
export type * from "./compaction.ts";
export * from "./frames.ts";
export type * from "./handle.ts";
export * from "./problem.ts";
export type * from "./prompt.ts";
export * from "./queue.ts";
export * from "./revise.ts";
export * from "./routes.ts";
export * from "./schemas.ts";
export * from "./sse.ts";
export * from "./tasks.ts";
export * from "./types.ts";
