// What Studio uses of the package. It is a client like any other: it imports these four rooms and nothing behind them.

export type { Change, Client, RemoteBranch, StreamingMessage } from "../../../src/client/index.ts";
export { createClient, isRemoteError } from "../../../src/client/index.ts";
export type {
  BoughEvent,
  Fact,
  Message,
  Part,
  ToolCallPart,
  ToolResultPart,
  UnknownFact,
} from "../../../src/events/index.ts";
export { callsOf, textOf } from "../../../src/events/parts.ts";
export { type BranchView, copyView, emptyView, fold, partings } from "../../../src/projection/index.ts";
export { type BranchUse, type PendingInteraction, useBranch, useChanges } from "../../../src/react/index.ts";
