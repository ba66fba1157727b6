// The vocabulary: every event, its version, and whether it is kept.

export {
  type Codec,
  codec,
  createCodec,
  type Draft,
  type Encoded,
  type Fact,
  type FactPayload,
  type FactType,
  isUnknown,
  typeName,
  type UnknownFact,
} from "./codec.ts";
export { type Channel, type Direction, type EventDefinition, kept, live } from "./define.ts";
export {
  type AgentStamp,
  type BoughEvent,
  isKept,
  type KeptEvent,
  keptEvent,
  type LiveDraft,
  type LiveEvent,
  type LiveType,
  liveEvent,
  type Routing,
  type UnknownEvent,
} from "./envelope.ts";
export { keptEvents } from "./kept.ts";
export { liveEvents } from "./live.ts";
export type {
  Message,
  NewMessage,
  OpenPart,
  Part,
  Role,
  TextPart,
  ToolCallPart,
  ToolOutput,
  ToolResultPart,
} from "./message.ts";
export { callsOf, textOf } from "./parts.ts";
export type { KeptOutput, KeptTool, RunIdentity, TurnRequest } from "./request.ts";
