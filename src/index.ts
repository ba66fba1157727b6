// Bough: durable sessions, branches and events for TypeScript agents.

export type { Clock } from "./base/clock.ts";
export { BoughError, type ErrorCode } from "./base/errors.ts";
export type { Ids } from "./base/ids.ts";
export type { Json, JsonObject } from "./base/json.ts";
export type { BoughEvent, KeptEvent, LiveEvent, Message, Part, Role, ToolOutput } from "./events/index.ts";
export type * from "./log/store.ts";
export type { Interaction, OpenTurn, TurnRecord } from "./projection/index.ts";
export * from "./sessions/index.ts";
