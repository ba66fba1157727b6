// Everything that PROTOCOL.md promises, on one store.

import { describe } from "vitest";
import { describeAssets } from "./assets.cases.ts";
import { describeAttacks } from "./attacks.cases.ts";
import { describeAudit } from "./audit.cases.ts";
import { describeChanges } from "./changes.cases.ts";
import { describeChildren } from "./children.cases.ts";
import { describeClientConfig } from "./client-config.cases.ts";
import { describeCompaction } from "./compaction.cases.ts";
import { describeConversationLimit } from "./conversation-limit.cases.ts";
import { describeFront } from "./front.cases.ts";
import { describeFuzz } from "./fuzz.cases.ts";
import { describeGraphs } from "./graphs.cases.ts";
import { describeHidden } from "./hidden.cases.ts";
import { describeInjection } from "./injection.cases.ts";
import type { OpenStore } from "./kit.ts";
import { describeLists } from "./lists.cases.ts";
import { describeLive } from "./live.cases.ts";
import { describeMatrix } from "./matrix.cases.ts";
import { describeMountStreams } from "./mount-streams.cases.ts";
import { describeMounts } from "./mounts.cases.ts";
import { describeNodes } from "./nodes.cases.ts";
import { describePages } from "./pages.cases.ts";
import { describePolicy } from "./policy.cases.ts";
import { describePrefix } from "./prefix.cases.ts";
import { describePrompts } from "./prompts.cases.ts";
import { describeProtocol } from "./protocol.cases.ts";
import { describeRuns } from "./protocol-runs.cases.ts";
import { describeQuestions } from "./questions.cases.ts";
import { describeQueue } from "./queue.cases.ts";
import { describeRaces } from "./races.cases.ts";
import { describeReads } from "./reads.cases.ts";
import { describeSecurity } from "./security.cases.ts";
import { describeSocket } from "./socket.cases.ts";
import { describeStalled } from "./stalled.cases.ts";

export function describeAll(open: OpenStore): void {
  describe("protocol", () => describeProtocol(open));
  describe("runs", () => describeRuns(open));
  describe("prefix", () => describePrefix(open));
  describe("client config", () => describeClientConfig(open));
  describe("compaction", () => describeCompaction(open));
  describe("prompts", () => describePrompts(open));
  describe("hidden branches", () => describeHidden(open));
  describe("children", () => describeChildren(open));
  describe("graphs", () => describeGraphs(open));
  describe("pages", () => describePages(open));
  describe("conversation limit", () => describeConversationLimit(open));
  describe("live", () => describeLive(open));
  describe("changes", () => describeChanges(open));
  describe("lists", () => describeLists(open));
  describe("reads", () => describeReads(open));
  describe("stalled", () => describeStalled(open));
  describe("socket", () => describeSocket(open));
  describe("nodes", () => describeNodes(open));
  describe("queue", () => describeQueue(open));
  describe("questions", () => describeQuestions(open));
  describe("races", () => describeRaces(open));
  describe("security", () => describeSecurity(open));
  describe("matrix", () => describeMatrix(open));
  describe("attacks", () => describeAttacks(open));
  describe("assets", () => describeAssets(open));
  describe("mounts", () => describeMounts(open));
  describe("mount streams", () => describeMountStreams(open));
  describe("front", () => describeFront(open));
  describe("injection", () => describeInjection(open));
  describe("fuzz", () => describeFuzz(open));
  describe("policy", () => describePolicy(open));
  describe("audit", () => describeAudit(open));
}

/** What a store can get wrong by itself: who has a branch, whose a session is, and what a text means. */
export function describeStoreBound(open: OpenStore): void {
  describe("runs", () => describeRuns(open));
  describe("reads", () => describeReads(open));
  describe("nodes", () => describeNodes(open));
  describe("queue", () => describeQueue(open));
  describe("questions", () => describeQuestions(open));
  describe("races", () => describeRaces(open));
  describe("matrix", () => describeMatrix(open));
  describe("injection", () => describeInjection(open));
  describe("audit", () => describeAudit(open));
}
