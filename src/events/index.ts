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
export type { FileBytes, FileInput, InputPart } from "./files.ts";
export type {
  ClarificationAnswer,
  ClarificationRequest,
  ClientToolAnswer,
  ClientToolRequest,
  ContinuationAnswer,
  ContinuationRequest,
  Interaction,
  InteractionAnswer,
  InteractionForm,
  InteractionForms,
  InteractionKind,
  PermissionAnswer,
  PermissionRequest,
} from "./interactions.ts";
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
export type { OverlayRecord } from "./overlay.ts";
export {
  defineEvent,
  type EventFrom,
  type EventSchema,
  type OwnEvent,
  type OwnEventDefinition,
} from "./own-events.ts";
export type { BranchOwner, Ownership } from "./owner.ts";
export { callsOf, textOf } from "./parts.ts";
export type { OwnEventTable } from "./present-own.ts";
export { type PromptRecord, withoutTexts } from "./prompt.ts";
export type { InputSource, QueuedInput, QueuedMessage } from "./queue.ts";
export type { KeptOutput, KeptTool, RunIdentity, TurnRequest } from "./request.ts";
export type { OpenTask } from "./task.ts";
