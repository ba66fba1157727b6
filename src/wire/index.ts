// The wire: what crosses HTTP, said once for server and client. Pure, and safe in a browser.

export * from "./frames.ts";
export * from "./problem.ts";
export * from "./routes.ts";
export * from "./schemas.ts";
export * from "./sse.ts";
export * from "./types.ts";
