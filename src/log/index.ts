export * from "./asked.ts";
export * from "./cursor.ts";
export * from "./decide.ts";
export * from "./hearers.ts";
export * from "./lines.ts";
export * from "./refusals.ts";
export * from "./store.ts";
export * from "./watchers.ts";
