// The published test kit: the contract suite every store must pass, a clock and ids that tests control, and a checker of
// logs. Loaded by test code only; needs vitest.

export type { BlobPlace, Blobs, BlobWriter } from "../log/blobs.ts";
export type {
  ByteRange,
  ContentRecord,
  ContentStore,
  ContentUrl,
  ContentUrlOptions,
  ContentWriter,
  NewContentRow,
} from "../log/content.ts";
export type {
  Appended,
  AppendOptions,
  BranchRecord,
  BranchRef,
  CheckpointRecord,
  ClaimOptions,
  LiveChannel,
  MaintenanceReport,
  NewBranch,
  NewEvent,
  OpenPage,
  OpenQuery,
  ReadOptions,
  RunClaim,
  RunQuery,
  Segment,
  SessionPage,
  SessionQuery,
  SessionRecord,
  Store,
  StoredEvent,
  StoreProblem,
  StoreSessionQuery,
} from "../log/store.ts";
export {
  type Script,
  type ScriptedAnswer,
  type ScriptedCall,
  type ScriptedModel,
  type ScriptedModelOptions,
  type ScriptedReply,
  scriptedModel,
} from "../scripted/index.ts";
export { checkLog, checkLogs } from "./check-log.ts";
export { type ManualClock, manualClock } from "./clock.ts";
export { describeStore } from "./contract/index.ts";
export type { ContractSizes, StoreHarness, StoreUnderTest } from "./contract/kit.ts";
export { hostileIds, seededIds } from "./ids.ts";
export { type BranchSnapshot, type StoreSnapshot, snapshotStore } from "./snapshot.ts";
